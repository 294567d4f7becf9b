// Package drain moves pods off machines that Auto Scaling ends. A machine that waits for weir's
// lifecycle hook is cordoned, its pods are evicted through the Eviction API, which respects
// disruption budgets, and then weir answers the hook, so that AWS ends the machine.
//
// One call of Step never waits, and the next pass continues. All durable state is elsewhere: AWS
// records that a machine is ending, and an annotation of its node records the start of the drain.
// So a process may end at any moment, and its successor continues. What is remembered here only
// saves calls.
//
// weir evicts no pod before AWS has accepted a heartbeat for the machine from this process. Then it
// is certain that the machine ends, and that it waits for this hook.
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/workload"
)

// Annotation is the annotation of a node that is being drained: the machine's id, and the start of the
// drain. The id distinguishes the machine from an earlier one of the same node name.
const Annotation = "weir.dev/draining"

// Cluster is the cluster to which the machines belong.
type Cluster interface {
	// Cordon makes a node unschedulable, and annotates it.
	Cordon(ctx context.Context, node, uid, annotation, value string) error
	// Pods returns the pods of a node.
	Pods(ctx context.Context, node string) ([]workload.Pod, error)
	// Evict evicts a pod. It succeeds if the pod is gone.
	Evict(ctx context.Context, p workload.Pod) error
}

// Actions are actions in AWS. Their errors show whether the lifecycle action has ended.
type Actions interface {
	// Hold extends AWS's wait for the machine.
	Hold(ctx context.Context, m Machine) error
	// Release completes the lifecycle action, with the result ABANDON if abandon is true.
	Release(ctx context.Context, m Machine, abandon bool) error
}

// ErrGone is the error of Actions if no lifecycle action of the hook is open.
var ErrGone = errors.New("no lifecycle action of the hook is open")

// Machine is a machine that waits for the hook.
type Machine struct {
	Pool            string // namespace/name
	Group, Instance string
	// Heartbeat is the time that AWS waits after each heartbeat.
	Heartbeat time.Duration
	// Timeout is the time that pods have. Abandon selects the result of the lifecycle action after it.
	Timeout time.Duration
	Abandon bool
}

// Nodes contains the nodes of the cluster.
type Nodes struct {
	// ByInstance has the nodes whose provider id names a machine. Unnamed counts the nodes without a
	// provider id.
	ByInstance map[string]Node
	Unnamed    int
	// Err is the error of reading them.
	Err error
}

// Node is a node, with the value of its annotation.
type Node struct {
	Name, UID string
	Cordoned  bool
	Draining  string
}

// Standing is the progress of a machine's drain.
type Standing struct {
	Machine
	Node string
	// Since is the start of the drain. Until is the time by which its pods must have gone, or zero if that
	// is unknown yet.
	Since, Until time.Time
	// Left lists the remaining pods, each with the reason. Why is any other reason that delays the machine.
	Left []Left
	Why  string
	// Err is a failure that people must fix. It is nil for transient failures.
	Err error
	// Ended is set if this step released the machine.
	Ended Ending
}

// Left is a pod that has not gone yet, with the reason.
type Left struct{ Pod, Why string }

// Ending is the way in which the drain of a machine ended.
type Ending string

// Endings.
const (
	Drained    Ending = "drained"
	WithPods   Ending = "with-pods"
	GivenUp    Ending = "given-up"
	WithoutAny Ending = "without-node"
)

const (
	// parallel is the number of machines, and the number of pods of one machine, that are handled
	// concurrently.
	parallel = 8
	// mostEvictions bounds the evictions of one step.
	mostEvictions = 200
	// stuckAfter is the time after its deadline at which weir stops waiting for a deleted pod: its kubelet
	// does not answer, or a finalizer keeps its object.
	stuckAfter = time.Minute
	// beats is the number of heartbeats within the time that AWS waits for one.
	beats = 3
)

// Drainer drains the machines of one target. Its zero value is ready once Now and Clock are set.
type Drainer struct {
	// Now measures durations. Clock gives the time for deadlines and annotations.
	Now, Clock func() time.Time

	mu    sync.Mutex
	known map[string]*memory // by machine
}

// memory contains facts about a machine that neither AWS nor its node has.
type memory struct {
	// first is the time at which the machine was first seen, by Clock. It is for machines without a node.
	first time.Time
	// beat is the time of the last heartbeat that AWS accepted, and served the time of the last step, both
	// by Now.
	beat, served time.Time
	// over says that AWS does not wait for the hook, or no longer does.
	over bool
}

// Advance advances the drain of each machine once, and forgets all other machines.
func (d *Drainer) Advance(ctx context.Context, machines []Machine, nodes Nodes, cluster Cluster, actions Actions) []Standing {
	known := d.recall(machines)
	order := make([]int, len(machines))
	for i := range order {
		order[i] = i
	}
	// Machines that had to wait in the last step come first.
	slices.SortStableFunc(order, func(a, b int) int { return known[a].served.Compare(known[b].served) })
	out := make([]Standing, len(machines))
	left := &allowance{left: mostEvictions}
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, i := range order {
		g.Go(func() error {
			at := d.Now()
			t := turn{d: d, known: known[i], cluster: cluster, actions: actions, left: left, Standing: Standing{Machine: machines[i]}}
			t.advance(ctx, nodes)
			if !t.starved {
				known[i].served = at
			}
			out[i] = t.Standing
			return nil
		})
	}
	_ = g.Wait() // errors are in the standings
	return out
}

// recall returns what the drainer remembers of each machine, in their order, and forgets all other machines.
func (d *Drainer) recall(machines []Machine) []*memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := map[string]*memory{}
	out := make([]*memory, len(machines))
	for i, m := range machines {
		have := d.known[m.Instance]
		if have == nil {
			have = &memory{first: d.Clock()}
		}
		now[m.Instance], out[i] = have, have
	}
	d.known = now
	return out
}

// allowance counts the evictions that are still allowed.
type allowance struct {
	mu   sync.Mutex
	left int
}

func (a *allowance) spend() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left--
	return a.left >= 0
}

// turn is the handling of a machine in a step.
type turn struct {
	Standing
	d       *Drainer
	known   *memory
	cluster Cluster
	actions Actions
	left    *allowance
	// starved says that pods were not evicted because the allowance was used up.
	starved bool
}

// advance continues the drain of one machine: heartbeat, cordon, evictions, and the answer to the hook once the
// machine is empty or its time is over.
func (t *turn) advance(ctx context.Context, nodes Nodes) {
	if t.known.over {
		t.Why = "it waits for another lifecycle hook"
		return
	}
	if !t.heartbeat(ctx) {
		return
	}
	node, joined := nodes.ByInstance[t.Instance]
	t.Since = t.known.first
	if joined {
		t.Node = node.Name
		if since, ok := sinceOf(node.Draining, t.Instance); ok && !since.After(t.Since) {
			t.Since = since
		}
	}
	t.Until = t.Since.Add(t.Timeout)
	gone := false
	switch {
	case nodes.Err != nil:
		t.Why = "the nodes of the cluster could not be read: " + nodes.Err.Error()
	case joined:
		gone = t.empty(ctx, node)
	case nodes.Unnamed > 0:
		t.Why = fmt.Sprintf("no node of the cluster names it, and %d have no provider ID, so one of them may be its own", nodes.Unnamed)
	default:
		t.release(ctx, WithoutAny, false)
		return
	}
	switch {
	case gone:
		t.release(ctx, Drained, false)
	case t.d.Clock().Before(t.Until):
	case t.Abandon:
		t.release(ctx, GivenUp, true)
	default:
		t.release(ctx, WithPods, false)
	}
}

// heartbeat sends a heartbeat if one is due, and reports whether AWS has accepted one.
func (t *turn) heartbeat(ctx context.Context) bool {
	now := t.d.Now()
	if !t.known.beat.IsZero() && now.Sub(t.known.beat) < t.Heartbeat/beats {
		return true
	}
	err := t.actions.Hold(ctx, t.Machine)
	switch {
	case errors.Is(err, ErrGone):
		t.known.over = true
		t.Why = "it does not wait for weir's hook"
		return false
	case err != nil:
		t.Why, t.Err = "AWS did not take a heartbeat: "+err.Error(), err
		return !t.known.beat.IsZero()
	}
	t.known.beat = now
	return true
}

// release answers the hook.
func (t *turn) release(ctx context.Context, how Ending, abandon bool) {
	err := t.actions.Release(ctx, t.Machine, abandon)
	if err != nil && !errors.Is(err, ErrGone) {
		t.Why, t.Err = "AWS did not take the answer to the hook: "+err.Error(), err
		return
	}
	t.known.over = true
	if err == nil { // otherwise another process was first, and has reported it
		t.Ended = how
	}
}

// empty evicts the pods of a node, and reports whether all of them have gone.
func (t *turn) empty(ctx context.Context, node Node) bool {
	if _, marked := sinceOf(node.Draining, t.Instance); !marked || !node.Cordoned {
		value := t.Instance + " " + t.Since.UTC().Format(time.RFC3339)
		if err := t.cluster.Cordon(ctx, node.Name, node.UID, Annotation, value); err != nil {
			t.failed("the node could not be cordoned", err)
			return false
		}
	}
	pods, err := t.cluster.Pods(ctx, node.Name)
	if err != nil {
		t.failed("the pods of the node could not be listed", err)
		return false
	}
	now := t.d.Clock()
	pods = slices.DeleteFunc(pods, func(p workload.Pod) bool { return p.Node != node.Name || stays(p, now) })
	t.Left = make([]Left, len(pods))
	var g errgroup.Group
	g.SetLimit(parallel)
	var mu sync.Mutex
	for i, p := range pods {
		t.Left[i] = Left{Pod: p.String(), Why: "it is ending"}
		if !p.GoneBy.IsZero() {
			continue
		}
		if !t.left.spend() {
			t.Left[i].Why, t.starved = "it waits for other machines to drain", true
			continue
		}
		g.Go(func() error {
			if err := t.cluster.Evict(ctx, p); err != nil {
				mu.Lock()
				defer mu.Unlock()
				t.Left[i].Why = err.Error()
				t.recordError(err)
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in Left
	return len(pods) == 0
}

// stays reports whether the drain does not wait for a pod: it belongs to the machine, has ended, or is
// stuck.
func stays(p workload.Pod, now time.Time) bool {
	return p.Mirror || p.Finished || p.Owner == "DaemonSet" || !p.GoneBy.IsZero() && now.Sub(p.GoneBy) > stuckAfter
}

func (t *turn) failed(what string, err error) {
	t.Why = what + ": " + err.Error()
	t.recordError(err)
}

// recordError stores an error that does not pass by itself.
func (t *turn) recordError(err error) {
	switch workload.KindOf(err) {
	case workload.Unauthorized, workload.Forbidden, workload.Invalid:
		t.Err = err
	}
}

// sinceOf parses the annotation of a machine's node. An annotation that is invalid or names another machine
// counts as missing.
func sinceOf(value, instance string) (time.Time, bool) {
	of, since, _ := strings.Cut(value, " ")
	at, err := time.Parse(time.RFC3339, since)
	return at, err == nil && of == instance
}
