"""Labels that are bags of candidates: the ambiguous SVM."""
