// Package strict reads YAML into Go values and finds every fault in one go, each with its
// path, its line and its column. Configurations and manifests are both read by it.
//
// Terms. A language says how documents of one sort are written: which struct tag holds a
// field's key, what a key and a document are called in messages, and whether scalars are
// read as Kubernetes reads them. A decoder reads one document of a language, in one
// version of its fields. A limit bounds a value: a range, a length, a pattern, a list of
// words. Limits stand in the tags of a field, in what the language adds to it (Refine),
// or in a tree by path, which Cluster API's schemas give. A Value is a type that reads a
// node in its own way.
//
// It refuses:
//   - a key that no field has, with the nearest name that one has; a field of another
//     version of the document; a field that this version of weir does not carry
//   - a key that is written twice, which parsers settle in favour of either
//   - a value of another type: a list for a mapping, a number for text, text in quotes
//     for a number, an empty item of a list
//   - what is outside of a limit, and a required field that is missing
//   - a document that is empty, too large, nested too deeply or one of several, more
//     nodes than maxNodes once its aliases are followed, and an alias without an end
//
// It goes on after a fault. One value has one fault at most from its type and its limits,
// and a field that is null is a field that is not written.
//
// Two languages. Kubernetes types a scalar that has no quotes by YAML 1.1: yes and off
// are booleans there, 3.0 is a whole number, and the API server refuses a number where a
// field is text. A manifest is read so, for what weir takes must be what a management
// cluster would take. kustomize has resolved its anchors, mostly; those that are left are
// followed. A configuration is written for weir alone. Any single value is text, as it
// is written, so that an account may stand without quotes and keep its zeros; true and
// false are the only booleans. An anchor is refused, as what a program may do should
// stand where it is read.
//
// Secrets. A value may have come out of an encrypted file or a variable. The decoder says
// which type it has and never what it is; an error of a type's own UnmarshalText may
// quote it, so a type that holds secrets must not. A limit's message quotes the value,
// since people find a misspelt word sooner when they see it, unless Secret is set.
//
// Why no library does this. encoding/json, sigs.k8s.io/yaml and yaml.v3's KnownFields
// stop at the first fault or give no column; the Kubernetes API server's structural
// schemas know no positions, and a JSON Schema validator speaks of a document that has
// been parsed, after keys that came twice and YAML 1.1's booleans are gone. yaml.v3's
// nodes hold what is needed: style, tag, line and column, in the order of the file.
package strict
