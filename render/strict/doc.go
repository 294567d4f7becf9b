// Package strict decodes YAML into Go values and finds all faults in one pass, each with its path, line and
// column. weir's configuration and manifests are both decoded by it.
//
// # Terms
//
// A language defines how documents are written: the struct tag with a field's key, the words for a key and a
// document in messages, and whether scalars are read like in Kubernetes. A decoder decodes one document of a
// language, in one version of its fields. A limit restricts a value: a range, a length, a pattern, a list of
// words. Limits come from the tags of a field, from the language (Refine), or from a tree by path, which is
// made from Cluster API's schemas. A Value is a type with its own decoding.
//
// # Refused documents
//
// The decoder refuses:
//   - an unknown key, with the most similar known key; a field of another version of the document; a field
//     that this version of weir does not support
//   - a duplicate key, for which parsers use either value
//   - a value of another type: a list for a mapping, a number for a string, a quoted string for a number, an
//     empty item in a list
//   - a value outside of a limit, and a missing required field
//   - a document that is empty, too large, nested too deeply or one of several
//   - more than maxNodes nodes after aliases are expanded, and an endless alias
//
// It continues after a fault. Type and limits of a value result in at most one fault. A null field counts as
// not written.
//
// # Two languages
//
// Kubernetes reads unquoted scalars by YAML 1.1: yes and off are booleans, 3.0 is an integer. The API server
// refuses a number for a string field. Manifests are read in this way, so that weir accepts the same
// manifests as a management cluster. kustomize has resolved most anchors, and the decoder follows the
// remaining ones.
//
// The configuration is only for weir. Every scalar can be a string as it is written, so an account number
// needs no quotes and keeps its zeros. true and false are the only booleans. Anchors are refused, because
// permissions must be readable in the place where they apply.
//
// # Secrets
//
// A value may come from an encrypted file or a variable. The decoder reports the type of a value, never the
// value. The error of a type's own UnmarshalText may quote the value, so a type for secrets must not do that.
// Messages about limits quote the value, which helps to find a misspelled word, unless Secret is set.
//
// # Why no library does this
//
//   - encoding/json, sigs.k8s.io/yaml and yaml.v3's KnownFields stop at the first fault or report no column.
//   - The structural schemas of the Kubernetes API server have no positions.
//   - A JSON Schema validator works on the parsed document, in which duplicate keys and the booleans of YAML
//     1.1 are no longer visible.
//
// The nodes of yaml.v3 have all that is needed: style, tag, line and column, in the order of the file.
package strict
