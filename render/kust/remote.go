package kust

import "regexp"

// remoteForm matches everything that kustomize, or one of its older versions,
// would fetch: a scheme with //, http: and https: in any form, git:: and the
// like, user@host, and github.com without a scheme. It matches more than
// kustomize's own rules do, for a false alarm costs a rename and a miss costs a request
// that an author in a repository has chosen.
var remoteForm = regexp.MustCompile(`(?i)^\s*([a-z][a-z0-9+.-]*://|https?:|(git|hg|s3|gcs|oci|file)::?|gh:|[a-z0-9._-]+@[^/]*[:/]|github\.com[/:])`)

// isRemote reports whether kustomize might take a reference for one to another
// machine or to another repository.
func isRemote(ref string) bool { return remoteForm.MatchString(ref) }
