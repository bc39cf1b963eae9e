"""The models of `AdaptiveSVMClassifier`: how they begin, learn, sleep and begin anew."""
