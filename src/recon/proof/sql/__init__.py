"""The control totals, each as one SELECT over the files of a run's folder."""
