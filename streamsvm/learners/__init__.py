"""River learners, one file a public class."""
