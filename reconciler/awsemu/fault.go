package awsemu

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// FaultKind is the effect of a fault on a call.
type FaultKind int

// The kinds of faults.
const (
	FailBefore FaultKind = iota + 1 // answer Code without effect
	CutBefore                       // cut the connection without effect
	LoseAnswer                      // take effect, then cut the connection
	Throttled                       // answer like the service when its bucket is empty
	Slow                            // take effect, answer after Delay
	StaleRead                       // answer a read with the state before the region's last write, unless the read is consistent
	Conflict                        // DynamoDB: refuse, because another transaction has the items
)

// Fault is one scripted fault. The zero value of a selector matches every call.
type Fault struct {
	Kind FaultKind

	Service    string // ec2, autoscaling, eks, ssm, sts, iam
	Operation  string // DescribeImages
	Resource   string // a text that the request's body or path must contain, such as a name or an id
	WritesOnly bool   // only operations that can change something

	After int // let this many matching calls pass first
	Times int // strike this many times; 0: once, negative: until removed

	Code    string // FailBefore
	Message string // FailBefore; "" gives a general one
	Status  int    // FailBefore: HTTP status; 0: the code's default

	Delay   time.Duration // Slow
	OnClock bool          // Slow: move a ManualClock by Delay instead of waiting
}

// Faults scripts faults. It is safe for concurrent use. If several faults match a call, the one that was
// added first strikes.
type Faults struct {
	// Launches, Hooks and Nodegroups are faults that affect resources instead of calls. Pending does not
	// count listeners of lifecycle hooks.
	Launches   world.Script[ec2.LaunchFault]
	Hooks      world.Script[asg.HookListener]
	Nodegroups world.Script[eks.NodegroupFault]

	mu    sync.Mutex
	armed []*armedFault
}

type armedFault struct {
	Fault
	seen, struck int
}

// Faults returns the emulator's fault script.
func (s *Server) Faults() *Faults { return &s.faults }

// Add arms a fault and returns a function that removes it. A StaleRead fault must be armed before the write
// that its answer must miss.
func (f *Faults) Add(fault Fault) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	armed := &armedFault{Fault: fault}
	f.armed = append(f.armed, armed)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(armed)
	}
}

// Clear removes all faults.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = nil
	f.Launches.Replace(nil)
	f.Hooks.Replace(nil)
	f.Nodegroups.Replace(nil)
}

// Pending returns the number of armed faults.
func (f *Faults) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.armed) + len(f.Launches.List()) + len(f.Nodegroups.List())
}

func (f *Faults) drop(armed *armedFault) {
	for i, a := range f.armed {
		if a == armed {
			f.armed = append(f.armed[:i:i], f.armed[i+1:]...)
			return
		}
	}
}

// match returns the fault that strikes a call, or nil.
func (f *Faults) match(call *Call, rq *wire.Exchange) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.armed {
		if !a.matches(call, rq) {
			continue
		}
		a.seen++
		if a.seen <= a.After {
			continue
		}
		a.struck++
		if a.Times >= 0 && a.struck >= max(a.Times, 1) {
			f.drop(a)
		}
		return &a.Fault
	}
	return nil
}

func (f *Fault) matches(call *Call, rq *wire.Exchange) bool {
	switch {
	case f.Service != "" && f.Service != call.Service,
		f.Operation != "" && f.Operation != call.Operation,
		f.WritesOnly && !call.Write,
		f.Kind == StaleRead && (call.Write || rq.Service.Fresh != nil && rq.Service.Fresh(rq)),
		f.Kind == Conflict && (rq.Service.Conflict == nil || rq.Service.Conflict(rq, f.Resource) == nil):
		return false
	}
	return f.Resource == "" || mentions(rq, f.Resource)
}

// mentions reports whether the request's parameters or path contain a text.
func mentions(rq *wire.Exchange, text string) bool {
	if rq.Form != nil {
		return rq.Form.Mentions(text)
	}
	for _, label := range rq.Labels {
		if strings.Contains(label, text) {
			return true
		}
	}
	return strings.Contains(string(rq.Body), text)
}

func (f *Fault) is(kind FaultKind) bool { return f != nil && f.Kind == kind }

func (f *Fault) realDelay() time.Duration {
	if f.is(Slow) && !f.OnClock {
		return f.Delay
	}
	return 0
}

func (f *Fault) message() string {
	if f.Message != "" {
		return f.Message
	}
	return "Scripted fault " + f.Code
}

// wantsSnapshots reports whether writes must keep the state before them.
func (f *Faults) wantsSnapshots() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.armed {
		if a.Kind == StaleRead {
			return true
		}
	}
	return false
}

// keepSnapshot stores the state of a region before a write.
func (s *Server) keepSnapshot(r *region) {
	data, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("marshal region: %v", err)) // regions are plain data
	}
	s.snapshot[r.Account+"/"+r.Name] = data
}

// handleStale runs a read on the region's state before the last write. Without a snapshot it uses the
// current state.
func (s *Server) handleStale(rq *wire.Exchange, r *region) error {
	if data := s.snapshot[r.Account+"/"+r.Name]; data != nil {
		var before region
		if err := json.Unmarshal(data, &before); err != nil {
			return err
		}
		s.join(&before)
		s.setRegion(rq, &before)
	}
	return rq.Handle()
}

// advance moves a clock that can be moved, and ignores a real one.
func (s *Server) advance(d time.Duration) {
	if c, ok := s.clock.(interface{ Advance(time.Duration) }); ok {
		c.Advance(d)
	}
}

// sleep waits for d, and reports whether it waited to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
