package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const engineKey scriptKey = "engine"

// cmdEngine is engine dynamodb|etcd, which starts one that daemons share, with its section of a
// configuration in $ENGINE; engine stop; and engine start, with what it held.
func cmdEngine(t *testing.T, ts *testscript.TestScript, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: engine dynamodb|etcd|stop|start")
	}
	var e engineProcess
	switch args[0] {
	case "dynamodb":
		e = newTableProcess(t)
	case "etcd":
		e = newEtcdProcess(t)
	default:
		e, _ = (*ts.Value(engineKey).(*any)).(engineProcess)
		if args[0] == "stop" {
			e.stop()
		} else {
			e.start()
		}
		return
	}
	*ts.Value(engineKey).(*any) = e
	ts.Setenv("ENGINE", e.section(e.at()))
}
