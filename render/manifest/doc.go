// Package manifest turns the objects that a kustomize build renders into what AWS should hold. It
// reads the kinds of Cluster API and of its AWS provider (CAPA) that describe machine pools, and
// weir's own PoolOptions. The types are weir's own: those of CAPA's module would bring controllers
// along, and decode without positions. Package render/oracle compares both.
//
// # Words
//
// An object is part of the build's output, with its variables substituted. A kind is given by
// apiVersion and kind; its versions share one Go type. A fault is a finding: it names the object
// and the path of the field, and callers add the file and line. A pool is one MachinePool together
// with its infrastructure object, the pool's object: an AWSMachinePool or an AWSManagedMachinePool.
// A lookup is something that only AWS can answer, such as an image by its name; it stays a question
// in the intent.
//
// # The order
//
// Three packages do the work, and none knows one that comes after it.
//
//  1. kinds decodes each object strictly, fills the defaults of CAPA's schemas and
//     webhooks, and makes an index by kind, namespace and name. A field that cannot be
//     read is noted, so that no rule reports it again.
//  2. derive copies a shared launch template to the place of the pool's own template.
//     This comes before any rule, so that one rule holds for both.
//  3. rules checks each object by itself: what Cluster API's and CAPA's webhooks refuse,
//     and what AWS's documentation says that AWS refuses. An error marks the object as
//     broken.
//  4. derive reads the clusters, then each pool whose objects are not broken: its group
//     or nodegroup, its launch template, its user data. PoolOptions comes last,
//     because it may add to anything but may not repeat it.
//  5. rules checks the derived pool against its cluster, its image and its bootstrap
//     configuration.
//  6. derive moves faults about a shared launch template to the object that declares it.
//
// # Rules of all three
//
// All faults are reported at once, in a fixed order, so that a user fixes a manifest with one push.
// One error drops its pool and no other. A value that AWS refuses for certain is an error. A value
// that AWS may accept after all, such as an instance type that is newer than weir, is a warning,
// and a value without effect is a note. weir accepts the manifests that CAPA accepts and refuses
// those that it refuses, with the exceptions that render/oracle lists. Nothing is guessed: if a
// value is missing, the pool waits. No message quotes a value that may be secret.
package manifest
