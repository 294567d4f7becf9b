package coordtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// scope is the model's state of one key: its owner, and the record that owners write.
type scope struct {
	owner coord.Owner // without the fields for people
	value string
}

type input struct {
	key  string
	call string
	seen coord.Owner // take: the previous owner; else the owner that writes or releases
	by   string      // take: the session
	want string      // write: the value that is replaced
	put  string
	free bool // write: as an input, without an owner
}

type output struct {
	err   error
	owner coord.Owner
	value string
}

func plain(o coord.Owner) coord.Owner {
	o.Key, o.Member, o.Since = "", "", time.Time{}
	return o
}

// model decides which answers one step may have. A call without an answer has no end, so its effect may come
// at any later time, or after everything.
var model = porcupine.Model{
	Init: func() any { return scope{} },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(input).key
			by[key] = append(by[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(scope), in.(input), out.(output)
		owns := i.free || s.owner == plain(i.seen)
		unknown := errors.Is(o.err, coord.ErrUnknown)
		switch i.call {
		case "read":
			return o.value == s.value, s
		case "owner":
			return plain(o.owner) == s.owner, s
		case "take":
			switch {
			case o.err == nil:
				ok := s.owner == plain(i.seen) && o.owner.Epoch.N > s.owner.Epoch.N && o.owner.Session == i.by
				return ok, scope{plain(o.owner), s.value}
			case errors.Is(o.err, coord.ErrConflict):
				return s.owner != plain(i.seen), s
			}
			// A take with an unknown result is looked up by its session, and recorded then.
			return true, s
		case "release":
			if o.err == nil || unknown && owns {
				released := s.owner
				released.Released = true
				return owns, scope{released, s.value}
			}
			return true, s
		case "write":
			fits := owns && s.value == i.want
			switch {
			case o.err == nil:
				return fits, scope{s.owner, i.put}
			case unknown && fits:
				return true, scope{s.owner, i.put}
			case errors.Is(o.err, coord.ErrConflict):
				return s.value != i.want, s
			}
			return true, s // the session may be dead
		}
		return false, s
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
}

// linearizable lets members do everything concurrently over wires that lose and delay requests. It checks
// that an order exists in which each answer is right.
func linearizable(w *world) {
	const members, each = 4, 50
	h, clean := &history{}, w.connect()
	var all sync.WaitGroup
	for id := range members {
		m := w.join(fmt.Sprint("m", id), long)
		m.wire.Arm(roughly(rand.New(rand.NewPCG(uint64(id), 1)))) //nolint:gosec // it is to be repeated
		a := &actor{
			world: w, history: h, id: id, m: m, clean: clean, holds: map[string]coord.Owner{},
			choose: rand.New(rand.NewPCG(uint64(id), 2)), //nolint:gosec // it is to be repeated
		}
		all.Go(func() {
			for n := range each {
				a.act(n, n > each/2)
			}
		})
	}
	all.Wait()
	switch result, info := porcupine.CheckOperationsVerbose(model, h.operations, time.Minute); result {
	case porcupine.Illegal:
		file := w.ArtifactDir() + "/history.html"
		w.must(porcupine.VisualizePath(model, info, file))
		w.Errorf("no order explains the answers: %s", file)
	case porcupine.Unknown:
		w.Error("an order was not found in time")
	}
	if len(h.operations) < members*each*2 {
		w.Errorf("only %d operations", len(h.operations))
	}
}

// roughly returns a fault function that loses or delays some writes.
func roughly(r *rand.Rand) func(call string) Fault {
	var mu sync.Mutex
	return func(call string) Fault {
		mu.Lock()
		defer mu.Unlock()
		switch n := r.IntN(100); {
		case call != "Commit" || n >= 30:
			return Fault{}
		case n < 8:
			return Fault{LoseRequest: true}
		case n < 16:
			return Fault{LoseAnswer: true}
		case n < 22:
			return Fault{Late: time.Duration(r.IntN(60)) * time.Millisecond}
		default:
			return Fault{Slow: time.Duration(r.IntN(20)) * time.Millisecond}
		}
	}
}

// history contains the operations of all members. Its time counts their calls and answers.
type history struct {
	tick       atomic.Int64
	mu         sync.Mutex
	operations []porcupine.Operation
}

// add adds an operation of a member that started at call and ends now.
func (h *history) add(id int, in input, call int64, out output) {
	end := h.tick.Add(1)
	if errors.Is(out.err, coord.ErrUnknown) {
		end = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{ClientId: id, Input: in, Call: call, Output: out, Return: end})
}

// actor is a member that reads over a wire without faults, and writes over its own wire.
type actor struct {
	*world
	*history
	id     int
	m      *member
	clean  *member
	choose *rand.Rand
	holds  map[string]coord.Owner
}

// act reads a record and its owner, and then does one of a member's possible actions. leaves says that it
// may leave and rejoin.
func (a *actor) act(n int, leaves bool) {
	key := fmt.Sprint("scope", a.choose.IntN(2))
	ctx, cancel := context.WithTimeout(a.Context(), []time.Duration{30 * time.Millisecond, 10 * time.Second}[a.choose.IntN(2)])
	defer cancel()
	rec, seen := a.read(key)
	mine, has := a.holds[key]
	at := a.tick.Add(1)
	switch c := a.choose.IntN(10); {
	case c == 0 && has:
		err := a.m.Release(ctx, mine)
		a.add(a.id, input{key: key, call: "release", seen: mine}, at, output{err: err})
		delete(a.holds, key)
	case c < 4 && !has:
		o, err := a.takeOver(ctx, key, seen)
		a.add(a.id, input{key: key, call: "take", seen: seen, by: a.m.ID()}, at, output{err: err, owner: o})
		if err == nil {
			a.holds[key] = o
		}
	case c == 4 && leaves:
		a.must(a.m.Leave(a.Context()))
		a.m.rejoin(a.world, fmt.Sprint("m", a.id), long)
		clear(a.holds)
	default:
		write := input{key: key, call: "write", seen: mine, want: string(rec.Value), put: fmt.Sprint(a.id, ".", n), free: !has}
		request := put(key, write.put, rec.Version)
		if has {
			request.Held = []coord.Owner{mine}
		}
		_, err := a.m.Write(ctx, request)
		a.add(a.id, write, at, output{err: err})
	}
}

// read reads the record and the owner of a key.
func (a *actor) read(key string) (rec coord.Record, seen coord.Owner) {
	ctx, cancel := context.WithTimeout(a.Context(), 10*time.Second)
	defer cancel()
	at := a.tick.Add(1)
	rec, err := a.clean.engine.Get(ctx, key)
	if err != nil {
		a.Error(err)
	}
	a.add(a.id, input{key: key, call: "read"}, at, output{value: string(rec.Value)})
	at = a.tick.Add(1)
	owners, err := a.clean.engine.Owners(ctx)
	if err != nil {
		a.Error(err)
	}
	seen = coord.Owner{Key: key}
	for _, o := range owners {
		if o.Key == key {
			seen = o
		}
	}
	a.add(a.id, input{key: key, call: "owner"}, at, output{owner: seen})
	return rec, seen
}

// takeOver takes a key, and looks up the result of a take without an answer.
func (a *actor) takeOver(ctx context.Context, key string, seen coord.Owner) (coord.Owner, error) {
	o, err := a.m.Take(ctx, key, seen)
	if errors.Is(err, coord.ErrUnknown) {
		a.must(a.m.resolveDoubts(a.world)) // a take in flight is now excluded, or was done
		if now := a.owner(a.clean, key); now.Session == a.m.ID() && now.Epoch.N > seen.Epoch.N {
			return now, nil
		}
	}
	return o, err
}

// resolveDoubts makes an empty write, after which the result of earlier writes is known.
func (m *member) resolveDoubts(w *world) error {
	_, err := m.Write(w.Context(), coord.Write{})
	return err
}
