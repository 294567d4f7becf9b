// Package simulate lets whole daemons live in a world of its own, so that ten thousand
// bad days can be seen before one of them comes.
//
// Everything of a daemon is real: configuration, sources, renders, plans, passes, page,
// state on disk. The outside world is here: a Git server that the git program serves,
// the emulator of AWS, the network between them, and time, which testing/synctest lets
// pass as soon as nothing else happens. A day takes some tenths of a second.
//
// A World makes one step at a time. It waits until every daemon waits, for an answer or
// for time to pass. Then it takes one of the calls that wait, decides by the seed what
// becomes of it, and lets it go; where none waits, time runs to the next event or call.
// All that is decided comes from the seed and from how many steps there were, so that
// the seed makes the same run again, and a decision can be left out to see whether the
// run still fails.
//
// For that, the goroutines of a daemon must run in an order that the load of the machine
// does not change. So the process runs one goroutine at a time, and none loses its turn
// before it waits for another one: there are no signals that interrupt it, and the thread of
// Go's scheduler that takes turns away never begins (alone_linux_test.go). A goroutine in a
// system call keeps its turn as well, so a child process has files and no pipes that another
// goroutine would have to serve. Garbage is collected between steps, and no answer comes at
// the very moment at which somebody stops to wait for it. Go picks at random the order of a
// map, of timers of one moment and of several channels that are ready: weir must work the
// same in any order, and a run that differs shows where it does not.
//
// faults_test.go lists what may become of a call, events_test.go and pulls_test.go what
// people and machines do, and checks_test.go what must hold whatever happens. Each is a
// list: another fault, event or promise is an entry. An instance is one weir of the
// world, and a member one of its daemons; each call knows by its context which process makes it.
//
// fleet_test.go has one large fleet in waves instead: with EC2's own buckets, a cluster with
// nodes for each target, and daemons that are killed while a good image and a bad one are
// rolled. There goroutines run as they like, and nothing goes wrong but that.
//
// The simulation has limits: AWS is the emulator, and knows only what it knows. A daemon
// that is killed leaves the files that the kernel has, so no power cut is seen. The
// kustomize worker is in the process. Goroutines of one daemon that are runnable at one
// moment run in one order of many; what another may change is what the race detector is
// for.
package simulate
