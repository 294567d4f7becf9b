// Package relocation moves work between the daemons of an instance on request, and shows the owners.
//
// # Terms
//
// A user asks a member to drain, which means to hand over everything that it owns and take nothing, or to
// take one scope or source. Members never call each other: a request is a record that any member writes,
// and that the addressed member executes. It is for one process; the next process on the same machine is
// another member. The caller receives one of two answers: the member has executed the request, or the
// request is only stored, because the member did not execute it in time. Every other command is stored for
// the owners of its targets, and the caller receives the list of owners that have read it.
package relocation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/members"
)

// drains is the prefix of records that ask a member to drain. lastDrain is a record that each such request
// also writes.
const drains, lastDrain = "drain/", "last-drain"

// drain is the value of these records.
type drain struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

const (
	// executeWithin is the time that a caller waits until a member has executed its request.
	executeWithin = 20 * time.Second
	// writeWithin is the timeout of one write. readEvery is the interval between reads of the records
	// during the wait.
	writeWithin = 5 * time.Second
	readEvery   = 250 * time.Millisecond
	// keepFor is the time that the record of a request stays after its member has died.
	keepFor = time.Hour
)

// Options configures a Dispatcher.
type Options struct {
	// Kind is the kind of engine, for readers.
	Kind string
	// Member is the name of this member.
	Member string
	Keeper *coord.Keeper
	Mirror *coord.Mirror
	// Wanted returns the scopes and sources that should be owned.
	Wanted func() []members.Wanted
	Logger *slog.Logger
}

// Dispatcher asks members to move work, and shows the members.
type Dispatcher struct {
	o     Options
	watch members.Watch
	// differ contains the reported differences of members with another configuration. Only Run uses it.
	differ map[string]string
}

var _ commands.Members = (*Dispatcher)(nil)

// New returns a Dispatcher. It processes no request until Run is called.
func New(o Options) *Dispatcher { return &Dispatcher{o: o} }

// Run tracks the owners, and executes requests to this member, until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) error {
	var endDrain func() // cancels the current Keeper.Drain
	defer func() {
		if endDrain != nil {
			endDrain()
		}
	}()
	heard := map[string]bool{}
	for {
		synced := d.o.Mirror.Synced()
		now := d.o.Mirror.Snapshot()
		d.updateView(now)
		d.answerConfirmations(ctx, now, heard)
		asked := now.Get(drains+d.o.Member).Version != 0
		switch {
		case asked && endDrain == nil:
			endDrain = d.drain(ctx)
		case !asked && endDrain != nil:
			endDrain() // otherwise it could still start, and nothing would end it
			endDrain = nil
			if err := d.o.Keeper.Undrain(ctx); err != nil {
				d.o.Logger.Warn("cannot report to other members yet that this member takes work again", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-synced:
		}
	}
}

// drain hands over in the background until it is done, or until the returned function has cancelled it.
func (d *Dispatcher) drain(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.o.Keeper.Drain(ctx); err != nil && ctx.Err() == nil {
			d.o.Logger.Error("cannot hand everything over", "error", err)
		}
	}()
	return func() { cancel(); <-done }
}

// watchSnapshot passes a snapshot of the records to the watch.
func (d *Dispatcher) watchSnapshot(now *coord.Snapshot) {
	d.watch.See(time.Now(), d.o.Member, now.Alive, now.Owners, d.o.Wanted())
}

// updateView updates the view, and reports members with another configuration.
func (d *Dispatcher) updateView(now *coord.Snapshot) {
	d.watchSnapshot(now)
	v, differ := d.watch.View(), map[string]string{}
	for _, m := range v.Different() {
		differ[m.Name] = m.DifferText()
		if d.differ[m.Name] != differ[m.Name] {
			d.o.Logger.Warn("coordination: another member has a different configuration; give all members the same one", "member", m.Name, "sections", strings.Join(m.Differs, ", "))
		}
	}
	for name := range d.differ {
		if differ[name] == "" {
			d.o.Logger.Info("coordination: a member has the same configuration again, or is gone", "member", name)
		}
	}
	d.differ = differ
}

// View returns the members and owners at the last read.
func (d *Dispatcher) View() members.View {
	v := d.watch.View()
	age, _ := d.o.Mirror.Age()
	v.Engine = members.Engine{Kind: d.o.Kind, ID: d.o.Mirror.Snapshot().Engine, Lag: age.Seconds()}
	if err := d.o.Mirror.Err(); err != nil {
		v.Engine.Error = err.Error()
	} else if since, err := d.o.Keeper.Refuses(); err != nil {
		v.Engine.Refused, v.Engine.RefusedSince = err.Error(), since.UTC()
	}
	return v
}

// Drain implements commands.Members.
func (d *Dispatcher) Drain(ctx context.Context, m commands.Move) (commands.Moved, error) {
	out := commands.Moved{Member: cmp.Or(m.Member, d.o.Member), Undo: m.Undo}
	err := d.ask(ctx, m, out.Member)
	for errors.Is(err, coord.ErrConflict) { // another request was written at the same time
		err = d.ask(ctx, m, out.Member)
	}
	if err != nil {
		return out, err
	}
	out.Followed = d.await(ctx, func(now *coord.Snapshot) bool {
		a, err := d.member(now, out.Member)
		out.Left = 0
		if err != nil {
			return !m.Undo // it is dead, and owns nothing
		}
		for _, o := range now.Owners {
			if o.Session == a.Session && !o.Released {
				out.Left++
			}
		}
		return a.Member.Draining != m.Undo && (m.Undo || out.Left == 0)
	})
	if m.Undo {
		out.Left = 0
	}
	return out, nil
}

// ask stores that a member must drain, or no longer must. It returns ErrConflict if another member was
// asked to drain since the records were read: the check that another member takes its work must then be
// repeated before anything is stored.
func (d *Dispatcher) ask(ctx context.Context, m commands.Move, member string) error {
	now, err := d.read(ctx)
	if err != nil {
		return err
	}
	if _, err := d.member(now, member); err != nil {
		return err
	}
	value, err := json.Marshal(drain{m.By, time.Now().UTC()})
	if err != nil {
		return err
	}
	ops := append(d.dropGone(now, member), coord.Op{Key: drains + member, Value: value, Delete: m.Undo, If: coord.Any})
	if !m.Undo {
		if !takesOver(now, member) {
			return fault("start another daemon of the instance, or stop this one", "no other member could take what %s owns", member)
		}
		ops = append(ops, coord.Op{Key: lastDrain, Value: value, If: now.Get(lastDrain).Version})
	}
	return d.write(ctx, ops)
}

// takesOver reports whether another member would take the work of a draining one.
func takesOver(now *coord.Snapshot, member string) bool {
	return slices.ContainsFunc(now.Alive, func(a coord.Alive) bool {
		return a.Member.Name != member && !a.Member.Draining && now.Get(drains+a.Member.Name).Version == 0
	})
}

// dropGone returns operations that delete requests to members that are permanently gone. A member that was only
// disconnected returns under the same name.
func (d *Dispatcher) dropGone(now *coord.Snapshot, except string) (out []coord.Op) {
	for _, r := range now.List(drains) {
		name := strings.TrimPrefix(r.Key, drains)
		var asked drain
		if json.Unmarshal(r.Value, &asked) == nil && time.Since(asked.At) < keepFor {
			continue
		}
		if _, err := d.member(now, name); err != nil && name != except && len(out) < coord.MaxOps/2 {
			out = append(out, coord.Op{Key: r.Key, Delete: true, If: coord.Any})
		}
	}
	return out
}

// Take implements commands.Members.
func (d *Dispatcher) Take(ctx context.Context, m commands.Move) (commands.Moved, error) {
	now, err := d.read(ctx)
	if err != nil {
		return commands.Moved{}, err
	}
	d.watchSnapshot(now)
	view := d.watch.View()
	out := commands.Moved{Member: cmp.Or(m.Member, d.o.Member)}
	o, err := view.Find(m.Scope)
	if err != nil {
		return out, fault("weir members shows what there is", "%v", err)
	}
	out.Scope = o.Key
	a, err := d.member(now, out.Member)
	switch {
	case err != nil:
		return out, err
	case a.Member.Draining || now.Get(drains+out.Member).Version != 0:
		return out, fault("weir drain "+out.Member+" --undo lets it take work again", "%s drains", out.Member)
	}
	op, err := coord.Pin(o.Key, out.Member, time.Now())
	if err != nil {
		return out, err
	}
	if err := d.write(ctx, []coord.Op{op}); err != nil {
		return out, err
	}
	out.Followed = d.await(ctx, func(now *coord.Snapshot) bool {
		owner := now.Owner(o.Key)
		return owner.Member == out.Member && !owner.Released && now.Lives(owner.Session)
	})
	return out, nil
}

// member returns a living member by name.
func (d *Dispatcher) member(now *coord.Snapshot, name string) (coord.Alive, error) {
	i := slices.IndexFunc(now.Alive, func(a coord.Alive) bool { return a.Member.Name == name })
	if i < 0 {
		var names []string
		for _, a := range now.Alive {
			names = append(names, a.Member.Name)
		}
		return coord.Alive{}, fault("the members are "+strings.Join(names, ", "), "no member is called %q", gates.Line(name, 80))
	}
	return now.Alive[i], nil
}

// read returns the current records of the engine.
func (d *Dispatcher) read(ctx context.Context) (*coord.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if err := d.o.Mirror.Sync(ctx); err != nil {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	return d.o.Mirror.Snapshot(), nil
}

func (d *Dispatcher) write(ctx context.Context, ops []coord.Op) error {
	s := d.o.Keeper.Session()
	if s == nil {
		return fmt.Errorf("ask a member: %w", state.Unreachable(cmp.Or(d.o.Keeper.Trouble(), coord.ErrLost)))
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if _, err := s.Write(ctx, coord.Write{Ops: ops}); err != nil {
		return fmt.Errorf("ask a member: %w", state.Unreachable(err))
	}
	return nil
}

// await reads the records until is returns true, or for executeWithin.
func (d *Dispatcher) await(ctx context.Context, is func(*coord.Snapshot) bool) bool {
	return d.awaitFor(ctx, executeWithin, is)
}

// awaitFor waits until is returns true for the records. It returns false if that does not happen within the
// time, or if ctx ends.
func (d *Dispatcher) awaitFor(ctx context.Context, within time.Duration, is func(*coord.Snapshot) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		if now, err := d.o.Mirror.Within(ctx, readEvery); err == nil && is(now) {
			return true
		}
		timer := time.NewTimer(readEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

func fault(hint, format string, args ...any) error {
	return &gates.Fault{Message: fmt.Sprintf(format, args...), Hint: hint}
}
