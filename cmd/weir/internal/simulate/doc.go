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
// What may become of a call is in faults_test.go, what people and machines do in
// events_test.go and pulls_test.go, and what must hold whatever happens in checks_test.go.
// Each is a list: another fault, event or promise is an entry. A member is one weir of
// the world; each call knows by its context which process makes it.
//
// What this does not show: AWS is the emulator, and knows what it knows. A daemon that is
// killed leaves the files that the kernel has, so no power cut is seen. The kustomize
// worker is in the process. Goroutines of one daemon that are runnable at one moment run
// in the order of Go's scheduler; what that may change is what the race detector is for.
package simulate
