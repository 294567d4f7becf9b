// Package oracle compares weir's types and rules with those of Cluster API and of its AWS provider,
// CAPA. It is a module of its own: none of its imports reaches weir's binary or go.sum. All of it
// is tests:
//
//   - every JSON path of their Go structs is known to weir, and the other way round;
//   - defaults, enums, bounds and required fields of their custom resource definitions are weir's
//     as well;
//   - manifests, made systematically, at random and by hand, are accepted by both or by neither,
//     and read as the same values after their webhooks' defaulting.
//
// Every difference is in differences.yaml with its reason. A difference that is not listed fails,
// and so does a listed one that no longer occurs.
package oracle
