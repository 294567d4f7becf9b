package sdk

import "github.com/weir-gitops/weir/render/lazyregexp"

// blob matches base64 that is too long for an id, a hash or a name.
var blob = lazyregexp.New(`[A-Za-z0-9+/]{88,}={0,2}`)

// withoutBlobs removes long base64 from a message. AWS repeats request parameters in its refusals, and user
// data, which may contain secrets, is one of them.
func withoutBlobs(message string) string { return blob.ReplaceAllLiteralString(message, "(redacted)") }
