package sdk

import "regexp"

// blob matches base64 that is too long to be an id, a hash or a name.
var blob = regexp.MustCompile(`[A-Za-z0-9+/]{88,}={0,2}`)

// withoutBlobs takes long base64 out of a message: AWS repeats parameters in its
// refusals, and user data, with all that is secret in it, is one.
func withoutBlobs(message string) string { return blob.ReplaceAllLiteralString(message, "(redacted)") }
