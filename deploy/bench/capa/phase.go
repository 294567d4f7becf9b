package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// phase is what a part of the run took: differences of two of them are of the same type.
type phase struct {
	part, label         string
	wall, user, system  time.Duration
	resident, anonymous float64 // MiB at its end
	byOperation         map[string]int
}

// take reads the clocks and counters of this process. The calls are those that CAPA counts
// itself for its metrics, with their repetitions.
func take() phase {
	p := phase{wall: time.Since(started), byOperation: map[string]int{}}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err == nil {
		p.user, p.system = time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano())
	}
	p.resident, p.anonymous = memory()
	families, err := metrics.Registry.Gather()
	if err != nil {
		panic(err) // a registry of this process: its collectors contradict each other
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			operation := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == "operation" {
					operation = l.GetValue()
				}
			}
			switch family.GetName() {
			case "aws_api_requests_total":
				p.byOperation[operation] += int(m.GetCounter().GetValue())
			case "aws_api_call_retries":
				p.byOperation[operation] += int(m.GetHistogram().GetSampleSum())
			}
		}
	}
	return p
}

var started = time.Now()

// memory is the resident and the anonymous memory of this process, 0 where it is not known.
func memory() (resident, anonymous float64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(text) {
		var kib float64
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %f kB", &kib); n == 1 {
			resident = kib / 1024
		}
		if n, _ := fmt.Sscanf(string(line), "RssAnon: %f kB", &kib); n == 1 {
			anonymous = kib / 1024
		}
	}
	return resident, anonymous
}

func (p phase) since(before phase) phase {
	p.wall, p.user, p.system = p.wall-before.wall, p.user-before.user, p.system-before.system
	for operation, n := range before.byOperation {
		p.byOperation[operation] -= n
	}
	maps.DeleteFunc(p.byOperation, func(_ string, n int) bool { return n == 0 })
	return p
}

// and is both phases, with the memory at the end of the later one.
func (p phase) and(later phase) phase {
	later.wall, later.user, later.system = p.wall+later.wall, p.user+later.user, p.system+later.system
	for operation, n := range p.byOperation {
		later.byOperation[operation] += n
	}
	return later
}

func (p phase) calls() (n int) {
	for _, k := range p.byOperation {
		n += k
	}
	return n
}

func (p phase) writes() (n int) {
	for operation, k := range p.byOperation {
		if !strings.HasPrefix(operation, "Describe") && !strings.HasPrefix(operation, "Get") && !strings.HasPrefix(operation, "List") {
			n += k
		}
	}
	return n
}

func (p phase) operations() string {
	var all []string
	for _, operation := range slices.Sorted(maps.Keys(p.byOperation)) {
		all = append(all, fmt.Sprintf("%s %d", operation, p.byOperation[operation]))
	}
	return strings.Join(all, ", ")
}
