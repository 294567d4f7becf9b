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

// scope is what the model knows of one key: its owner, and the record that owners write.
type scope struct {
	owner coord.Owner // without what is for people
	value string
}

type input struct {
	key  string
	call string
	seen coord.Owner // take: what is taken over; else who writes or releases
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

// model says what one step may answer. A call that nobody answered has no end, so that it
// may have its effect at any later time, or behind everything.
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
			// A take that is unknown is looked up by who tried: its operation is recorded then.
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

// linearizable lets members do everything at once over wires that lose, delay and slow,
// and asks whether there is an order in which each answer is right.
func linearizable(w *world) {
	const members, each = 4, 50
	var (
		tick    atomic.Int64
		mu      sync.Mutex
		history []porcupine.Operation
		all     sync.WaitGroup
		clean   = w.connect()
	)
	for id := range members {
		m := w.join(fmt.Sprint("m", id), long)
		r := rand.New(rand.NewPCG(uint64(id), 1)) //nolint:gosec // it is to be repeated
		m.wire.Arm(func(call string) Fault {
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
		})
		all.Go(func() {
			choose := rand.New(rand.NewPCG(uint64(id), 2)) //nolint:gosec // it is to be repeated
			holds := map[string]coord.Owner{}
			record := func(in input, call int64, out output) {
				end := tick.Add(1)
				if errors.Is(out.err, coord.ErrUnknown) {
					end = math.MaxInt64
				}
				mu.Lock()
				defer mu.Unlock()
				history = append(history, porcupine.Operation{ClientId: id, Input: in, Call: call, Output: out, Return: end})
			}
			for n := range each {
				key := fmt.Sprint("scope", choose.IntN(2))
				ctx, cancel := context.WithTimeout(w.Context(), []time.Duration{30 * time.Millisecond, 10 * time.Second}[choose.IntN(2)])
				reader, cancelReader := context.WithTimeout(w.Context(), 10*time.Second)
				at := tick.Add(1)
				rec, err := clean.engine.Get(reader, key)
				if err != nil {
					w.Error(err)
				}
				record(input{key: key, call: "read"}, at, output{value: string(rec.Value)})
				at = tick.Add(1)
				owners, err := clean.engine.Owners(reader)
				if err != nil {
					w.Error(err)
				}
				seen := coord.Owner{Key: key}
				for _, o := range owners {
					if o.Key == key {
						seen = o
					}
				}
				record(input{key: key, call: "owner"}, at, output{owner: seen})
				mine, has := holds[key]
				at = tick.Add(1)
				switch c := choose.IntN(10); {
				case c == 0 && has:
					err := m.Release(ctx, mine)
					record(input{key: key, call: "release", seen: mine}, at, output{err: err})
					delete(holds, key)
				case c < 4 && !has:
					o, err := m.Take(ctx, key, seen)
					if errors.Is(err, coord.ErrUnknown) {
						w.must(m.settle(w)) // one that was on its way is excluded, or was done
						if now := w.owner(clean, key); now.Session == m.ID() && now.Epoch.N > seen.Epoch.N {
							o, err = now, nil
						}
					}
					record(input{key: key, call: "take", seen: seen, by: m.ID()}, at, output{err: err, owner: o})
					if err == nil {
						holds[key] = o
					}
				case c == 4 && n > each/2:
					w.must(m.Leave(w.Context()))
					m.rejoin(w, fmt.Sprint("m", id), long)
					clear(holds)
				default:
					write := input{key: key, call: "write", seen: mine, want: string(rec.Value), put: fmt.Sprint(id, ".", n), free: !has}
					request := put(key, write.put, rec.Version)
					if has {
						request.Held = []coord.Owner{mine}
					}
					_, err := m.Write(ctx, request)
					record(write, at, output{err: err})
				}
				cancel()
				cancelReader()
			}
		})
	}
	all.Wait()
	switch result, info := porcupine.CheckOperationsVerbose(model, history, time.Minute); result {
	case porcupine.Illegal:
		file := w.ArtifactDir() + "/history.html"
		w.must(porcupine.VisualizePath(model, info, file))
		w.Errorf("no order explains the answers: %s", file)
	case porcupine.Unknown:
		w.Error("an order was not found in time")
	}
	if len(history) < members*each*2 {
		w.Errorf("only %d operations", len(history))
	}
}

// settle writes nothing, so that what may have been on its way is known.
func (m *member) settle(w *world) error {
	_, err := m.Write(w.Context(), coord.Write{})
	return err
}
