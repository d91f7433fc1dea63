"""Check whether the revisions of a repository, or the folders of a training, are what their names say."""
