# To import the perceptron is to register it, for all tests of the process.
collect_ignore_glob = ["perceptron*"]
