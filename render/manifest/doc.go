// Package manifest derives the desired state of AWS from the objects that a kustomize build renders. It reads
// the kinds of Cluster API and of its AWS provider (CAPA) that describe machine pools, and weir's own
// PoolOptions. The types are weir's own. CAPA's module would add controllers to the program, and its types
// decode without positions. Package render/oracle compares both.
//
// # Words
//
// An object is part of the build's output, with its variables substituted. A kind has an apiVersion and a
// name; all versions of a kind share one Go type. A fault is a finding about the field of an object; callers
// add the file and line. A pool is a MachinePool together with its infrastructure object, which is an
// AWSMachinePool or an AWSManagedMachinePool. A lookup is a question that only AWS can answer, such as an
// image id by name. The intent contains the lookup, not the answer.
//
// # The order
//
// Three packages do the work. None of them imports a later one.
//
//  1. kinds decodes each object strictly, fills in the defaults of CAPA's schemas and
//     webhooks, and makes an index by kind, namespace and name. It records fields that it
//     cannot read, so that no rule reports them again.
//  2. derive copies a shared launch template to the field of the pool's own template.
//     This comes before all rules, so that the same rules apply to both.
//  3. rules checks each object alone: everything that the webhooks of Cluster API and CAPA
//     refuse, and everything that AWS refuses according to its documentation. An error
//     marks the object as broken.
//  4. derive reads the clusters, then each pool without broken objects: its group or
//     nodegroup, its launch template, its user data. PoolOptions is last, because it can
//     add to all of these and must not repeat them.
//  5. rules checks the derived pool against its cluster, its image and its bootstrap
//     configuration.
//  6. derive moves faults about a shared launch template to the object that declares it.
//
// # Rules of all three packages
//
//   - All faults are reported at once, in a fixed order, so that a user can fix a manifest with one push.
//   - An error removes only its own pool.
//   - A value that AWS certainly refuses is an error. A value that AWS may accept, such as an instance type
//     newer than weir, is a warning. A value without effect is a note.
//   - weir accepts the manifests that CAPA accepts, and refuses the manifests that CAPA refuses.
//     render/oracle lists the exceptions.
//   - weir does not guess. If a value is missing, the pool waits.
//   - No message quotes a value that may be secret.
package manifest
