"""What a learner learns with: models of rows of numbers, which know no names and no labels."""
