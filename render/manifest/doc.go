// Package manifest turns rendered objects into intents: it decodes the kinds of
// Cluster API and of its AWS provider that describe machine pools, fills the
// defaults that those projects fill, checks their rules, and derives what AWS
// should hold.
//
// The types here are weir's own. Decoding is strict, and every fault is found in
// one go and names the object and the path of the field, so that a caller who
// knows where the field was written can point there.
package manifest
