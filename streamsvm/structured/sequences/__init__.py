"""Linear models of label sequences: LaRank, passive-aggressive steps and the perceptron.

Bordes, New Algorithms for Large-Scale Support Vector Machines, thesis (2010), 5.3 and Algorithm 6.
"""
