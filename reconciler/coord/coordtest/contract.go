package coordtest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Back is a back end to test.
type Back struct {
	// Data makes empty data.
	Data func(t *testing.T) Data
	// Lease is the shortest lease that the engine accepts, in real time. Zero means that sessions do not
	// expire.
	Lease time.Duration
	// Simulated runs a case in simulated time. It is nil if the back end is not simulated.
	Simulated func(t *testing.T, run func(*testing.T))
}

// Data is the data of one instance.
type Data struct {
	// Store opens the data for another member.
	Store func(clock coord.Clock) coord.Store
	// Wipe empties the data, and Save makes a backup. They are nil if the back end cannot do that.
	Wipe func()
	Save func() (restore func())
}

// long is a lease that does not end during a case.
const long = 5 * time.Minute

// Contract runs the conformance tests that every back end of package coord must pass, each as a subtest. The
// tests of a back end call it.
func Contract(t *testing.T, b Back) {
	for _, c := range []struct {
		name string
		run  func(*world)
	}{
		{"members come and go", comeAndGo},
		{"one owner", oneOwner},
		{"hand-over", handOver},
		{"expiry", expiry},
		{"dead sessions stay dead", staysDead},
		{"records are conditional", conditional},
		{"writes are whole", whole},
		{"owners write under their epoch", fenced},
		{"limits", limits},
		{"changes are reported", changes},
		{"logs are bounded", boundedLogs},
		{"listing has pages", pages},
		{"answers are lost", lostAnswers},
		{"requests are late", lateRequests},
		{"counting together", counting},
		{"slots are used again", slots},
		{"clocks run apart", clocksApart},
		{"a wiped engine", wiped},
		{"a restored engine", restored},
		{"histories are linearizable", linearizable},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			runCase := b.Simulated
			if runCase == nil {
				t.Parallel() // the cases mostly wait
				runCase = func(t *testing.T, run func(*testing.T)) { run(t) }
			}
			runCase(t, func(t *testing.T) { c.run(&world{T: t, back: b, data: b.Data(t)}) })
		})
	}
}

type world struct {
	*testing.T
	back Back
	data Data
}

// member is a member with its own wire and clocks.
type member struct {
	*coord.Session
	engine *coord.Engine
	wire   *Wire
	clock  *Clock
}

func (w *world) join(name string, ttl time.Duration) *member {
	w.Helper()
	m := w.connect()
	m.rejoin(w, name, ttl)
	return m
}

func (w *world) connect() *member {
	m := &member{clock: NewClock()}
	m.wire = NewWire(w.data.Store(m.clock))
	m.engine = coord.New(m.wire, coord.Options{Clock: m.clock})
	w.Cleanup(func() { w.must(m.engine.Close()) })
	return m
}

func (m *member) rejoin(w *world, name string, ttl time.Duration) {
	w.Helper()
	s, err := m.engine.Join(w.Context(), coord.Member{Name: name, Address: "https://" + name}, ttl)
	w.must(err)
	m.Session = s
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) wants(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("got %v, want %v", err, want)
	}
}

func (w *world) alive(m *member) (names []string) {
	w.Helper()
	alive, err := m.engine.Members(w.Context())
	w.must(err)
	for _, a := range alive {
		names = append(names, a.Member.Name)
	}
	slices.Sort(names)
	return names
}

func (w *world) owner(m *member, key string) coord.Owner {
	w.Helper()
	owners, err := m.engine.Owners(w.Context())
	w.must(err)
	for _, o := range owners {
		if o.Key == key {
			return o
		}
	}
	return coord.Owner{Key: key}
}

func (w *world) acquire(m *member, key string) coord.Owner {
	w.Helper()
	o, err := m.Take(w.Context(), key, w.owner(m, key))
	w.must(err)
	return o
}

func (w *world) put(m *member, key, value string, version int64) int64 {
	w.Helper()
	v, err := m.Write(w.Context(), put(key, value, version))
	w.must(err)
	return v
}

func put(key, value string, version int64, held ...coord.Owner) coord.Write {
	return coord.Write{Held: held, Ops: []coord.Op{{Key: key, Value: []byte(value), If: version}}}
}

func (w *world) wantRecord(m *member, key, value string) int64 {
	w.Helper()
	r, err := m.engine.Get(w.Context(), key)
	w.must(err)
	if string(r.Value) != value || r.Key != key || (r.Version == 0) != (value == "") {
		w.Fatalf("%s is %q of version %d, want %q", key, r.Value, r.Version, value)
	}
	return r.Version
}

// until waits for a change that the engine makes in its own time.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%s did not come", what)
		}
	}
}
