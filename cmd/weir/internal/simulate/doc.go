// Package simulate runs whole daemons in a simulated world, so that tests can cover ten thousand bad days
// before one of them happens.
//
// Everything of a daemon is real: configuration, sources, renders, plans, passes, page, state on disk. The
// outside world is simulated: a Git server that the git program serves, the emulator of AWS, the network
// between them, and time, which testing/synctest advances as soon as nothing else happens. A day takes some
// tenths of a second.
//
// A World executes one step at a time. It waits until every daemon waits, for a response or for time to
// pass. Then it selects one of the waiting calls, decides its result by the seed, and lets it continue. If
// no call waits, time advances to the next event or call. All decisions depend only on the seed and the
// number of steps. So the same seed repeats the same run, and a decision can be removed to find out whether
// the run still fails.
//
// This requires that the load of the machine does not change the order of a daemon's goroutines. So the
// process runs one goroutine at a time, and each runs until it waits for another one: no signals interrupt
// it, and the thread of Go's scheduler that preempts goroutines never starts (alone_linux_test.go). A
// goroutine in a system call is not replaced either, so a child process uses files instead of pipes that
// another goroutine would have to serve. Garbage is collected between steps, and no response arrives at the
// exact moment at which a caller's timeout ends. Go randomizes the order of maps, of simultaneous timers
// and of several ready channels. weir must work the same in any order, and a run that differs shows where
// it does not.
//
// faults_test.go lists the possible results of a call, events_test.go and pulls_test.go the actions of
// people and machines, and checks_test.go the conditions that must always be true. Each is a list: add an
// entry for another fault, event or condition. An instance is one weir of the world, and a member one of
// its daemons. The context of each call identifies the process that makes it.
//
// fleet_test.go instead tests one large fleet in waves: with EC2's own token buckets, a cluster with nodes
// for each target, and daemons that are killed during the rollouts of a good image and of a bad one. There,
// goroutines run in any order, and there are no other faults.
//
// The simulation has limits. AWS is the emulator, with only the emulator's behaviour. A killed daemon
// leaves the files as the kernel has them, so power failures are not simulated. The kustomize worker is in
// the same process. Runnable goroutines of one daemon run in one of many possible orders; the race detector
// covers the other orders.
package simulate
