// Package manifest turns the objects that a kustomize build renders into what AWS
// should hold. It reads the kinds of Cluster API and of its AWS provider (CAPA) that
// describe machine pools, and weir's own PoolOptions. The types are weir's own: those of
// CAPA's module would bring controllers along, and decode without positions. Package
// render/oracle holds both against each other.
//
// # Words
//
// An object is what the build rendered, with its variables substituted. A kind is what
// its apiVersion and kind say; its versions share one Go type. A fault is a finding: it
// names the object and the path of the field, for whoever knows the file and line. A
// pool is one MachinePool together with its infrastructure object, the pool's object:
// an AWSMachinePool or an AWSManagedMachinePool. A lookup is what only AWS can answer,
// such as an image by its name; it stays a question in the intent.
//
// # The order
//
// Three packages do the work, and none knows one that comes after it.
//
//  1. kinds decodes each object strictly, fills the defaults of CAPA's schemas and
//     webhooks, and makes an index by kind, namespace and name. A field that cannot be
//     read is noted, so that no rule speaks of it again.
//  2. derive puts a launch template that pools share where one of their own would be.
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
// Every fault comes in one go, in a fixed order: who mends a manifest pushes once. One
// error drops its pool and no other. A value that AWS refuses for certain is an error;
// one that AWS may take after all, such as an instance type that is newer than weir, a
// warning; one without effect a note. A manifest that CAPA takes is taken, and one that
// it refuses is refused, with the exceptions that render/oracle lists. Nothing is
// guessed: where a value is missing, the pool waits. No message quotes a value that may
// be secret.
package manifest
