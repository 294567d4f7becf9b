// Package oracle compares weir's types and rules with Cluster API and its AWS provider, CAPA. It is a
// separate module, so that weir's binary and go.sum do not contain its imports. It has only tests:
//
//   - weir knows every JSON path of their Go structs, and has no others.
//   - weir has the same defaults, enums, bounds and required fields as their custom resource definitions.
//   - Both accept or refuse the same manifests, which are made systematically, at random and by hand. Both
//     read the same values after the defaulting of webhooks.
//
// differences.yaml lists every difference with its reason. Differences that are not listed, and listed ones
// that no longer exist, fail the tests.
package oracle
