"""What solvers share: stores of rows, kernel values and their cache, states, draws, locks."""
