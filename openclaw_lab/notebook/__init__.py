"""The notebooks as files: a working copy, JupyterLab on it, a run without a browser and its report."""
