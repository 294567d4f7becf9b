package simulate

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/source/transport"
)

// Options of a run.
type Options struct {
	Seed uint64
	// Pools is how many there are at first, Days how long the world goes on before it
	// comes to rest, Events how many things happen a day, and Faults by what the usual
	// likelihood of a fault is multiplied.
	Pools, Days, Events int
	Faults              float64
	// Daemons is how many there are, each with as many pools; Reviewed says that the first
	// applies what people have approved and nothing else. Interval is that of passes.
	Daemons int
	// Members is how many daemons the first instance has, over an engine; 0 for one without.
	// Then the world goes on for Hours.
	Members, Hours int
	Reviewed       bool
	// Alone has nobody open pull requests, Steady has no process end.
	Alone, Steady bool
	Interval      time.Duration
	// Leave are the decisions that are not carried out, by step.
	Leave []int
	// Log gets a line for each step; nil for none.
	Log io.Writer
	// Daily is called after each day; nil for nothing. Forgets says that the world keeps
	// nothing of what happened long ago, for runs that take years.
	Daily   func(w *World, day int)
	Forgets bool
}

// Decision is something that the seed decided. Those of people have negative steps.
type Decision struct {
	Step int
	What string
}

func (d Decision) String() string { return fmt.Sprintf("%d %s", d.Step, d.What) }

// World is one run.
type World struct {
	o     Options
	t     *testing.T
	began time.Time
	queue queue
	step  int
	calm  bool
	// struck is what the seed decided, and was carried out.
	struck []Decision
	sum    hash.Hash64
	last   []string
	events []event
	// ahead is what AWS's clock is before that of the machine, wall what the machine's was
	// set ahead by since; frozen says that the machine stands still.
	ahead  time.Duration
	wall   time.Duration
	frozen bool
	hooks  int
	// allocated is what the process has taken from the heap, collected as of the last time
	// that garbage was collected.
	allocated [1]metrics.Sample
	collected uint64
	// died says that a process was killed since the last step.
	died bool
	// killAfter is done once the call that had its turn has had its effect.
	killAfter func()

	aws   *awsemu.Server
	repo  *repo
	net   *listener
	forge forge
	// instances are the weirs of the world, targets and members those of all of them.
	instances []*instance
	engine    *engine // nil where none has several members
	targets   []*target
	members   []*member
	// stopped are the targets of which somebody cancelled a rollout by hand.
	stopped map[*target]bool
	checks  checks
	faults  []string // what did not hold
}

// Result is what came of a run.
type Result struct {
	// Failed says what did not hold; empty where everything did.
	Failed []string
	// Decisions are what the seed decided, Sum stands for all that happened, Last is
	// what happened last. Steps is how many there were, Writes how many calls changed AWS.
	Decisions     []Decision
	Sum           uint64
	Last          string
	Steps, Writes int
}

// Run makes a run. It changes variables of the process, and so there is one at a time.
func Run(t *testing.T, o Options) (out Result) {
	t.Helper()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKIASIMULATED", "AWS_SECRET_ACCESS_KEY": canary, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "HTTP_PROXY": "", "HTTPS_PROXY": ""} {
		t.Setenv(name, value)
	}
	around, dial := sdk.Around, transport.Dial
	defer func() { sdk.Around, transport.Dial = around, dial }()
	t.Run(fmt.Sprintf("seed %d", o.Seed), func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, o.Seed)
		synctest.Test(t, func(t *testing.T) { out = run(t, o) })
	})
	return out
}

func run(t *testing.T, o Options) Result {
	w := &World{o: o, t: t, began: time.Now(), sum: newSum(), stopped: map[*target]bool{}, allocated: [1]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}}
	w.queue.arrived = make(chan struct{}, 1)
	w.net, w.forge.statuses = newListener(), map[string][]postedStatus{}
	w.ahead = w.skew()
	aws, err := awsemu.New(awsemu.Options{Clock: skewed{w}, Timings: world.Realistic()})
	if err != nil {
		t.Fatal(err)
	}
	if err := aws.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"images": [{"id": "` + foreignImage + `", "name": "ours", "architecture": "x86_64"}]}}}`)); err != nil {
		t.Fatal(err)
	}
	w.aws = aws
	w.repo = newRepo(t)
	if o.Members > 0 {
		w.joinCrew()
	}
	for i := len(w.instances); i < max(1, o.Daemons); i++ {
		w.join(i)
	}
	checked := sdk.Around // each request is held against AWS's models
	sdk.Around = func(next httpbody.Doer) httpbody.Doer { return checked(&client{w, next}) }
	transport.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return w.net.dial(ctx) }
	hosts := http.NewServeMux()
	hosts.Handle("git.example.com/", w.serve("git", w.gitServer()))
	hosts.Handle("forge.example.com/", w.serve("forge", w.forge.handler(w)))
	server := &http.Server{Handler: hosts, ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, callerKey{}, c.(here).by)
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(w.net) }()

	w.begin()
	for _, m := range w.members {
		m.start(t.TempDir())
	}
	w.schedule()
	w.run(w.began.Add(time.Duration(o.Hours) * time.Hour))
	for day := range o.Days {
		w.run(w.began.Add(time.Duration(day+1) * 24 * time.Hour))
		if o.Forgets {
			w.forget(day + 1)
		}
		if o.Daily != nil {
			o.Daily(w, day+1)
		}
	}
	w.settle()
	for _, m := range w.members {
		m.stop()
	}
	_ = server.Close()
	_ = w.net.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		w.fail("the servers ended with %v", err)
	}
	return Result{Failed: w.faults, Decisions: w.struck, Sum: w.sum.Sum64(), Last: w.Last(60), Steps: w.step, Writes: w.checks.writes}
}

// fail notes what did not hold.
func (w *World) fail(format string, args ...any) {
	const most = 20
	text := fmt.Sprintf(format, args...)
	w.trace("FAILED: %s", text)
	if len(w.faults) < most {
		w.faults = append(w.faults, time.Now().UTC().Format("01-02 15:04:05 ")+text)
	}
}

// left reports whether a decision is not to be carried out.
func (w *World) left(step int) bool { return slices.Contains(w.o.Leave, step) }

// canary is a secret that daemons know, and nobody else may see.
const canary = "c4n4ry-of-the-simulation"

// log takes what a daemon logs.
type log struct {
	world *World
	out   io.Writer
}

func (l *log) Write(b []byte) (int, error) {
	if strings.Contains(string(b), canary) {
		l.world.fail("a secret is logged: %s", b)
	}
	if l.out != nil {
		return l.out.Write(b)
	}
	return len(b), nil
}

func (w *World) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&log{w, w.o.Log}, nil))
}
