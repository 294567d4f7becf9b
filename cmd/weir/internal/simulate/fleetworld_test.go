package simulate

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/app"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/source/transport"
)

// fleetSize is how large a fleet is: clusters, each a target with pools, each of machines.
type fleetSize struct{ clusters, pools, machines int }

// fleet is a world for one large fleet: AWS with EC2's own buckets, a cluster with nodes for
// each target, a forge with the repository, and daemons. Other than in a World nothing goes
// wrong there but what a test does, and goroutines run as they like.
type fleet struct {
	t       *testing.T
	size    fleetSize
	aws     *awsemu.Server
	repo    *repo
	forge   *fleetForge
	net     *listener
	hosts   map[string]*listener // of clusters, by address
	members []*fleetMember
	memory  *coordtest.Memory // nil for one daemon alone
	log     io.Writer

	clusters []*workloadtest.Server
	images   map[string]string // by template and version
	follows  bool              // pools follow the newest image
	nodes    map[string]*machine
	first    string // the first machine of the bad image that was seen
	every    time.Duration
	rand     *rand.Rand
	strikes  []time.Time // when daemons are killed
	dead     []*daemon
	kills    int       // how often they were
	lived    time.Time // since when the last daemon that was killed is replaced
	mark     time.Time
	cpu      time.Duration

	gits    sync.Mutex
	mu      sync.Mutex
	writes  int   // how many calls changed AWS
	killAt  []int // those at which a daemon is killed: each second one has its effect
	killing chan *daemon
}

// machine is one of the fleet as its cluster sees it.
type machine struct {
	id, group, zone, image string
	seen                   time.Time
	state                  string // of its node: "", False or True
}

// fleetMember is one daemon of the fleet, and the process that runs it.
type fleetMember struct {
	id      string
	dir     string
	starts  int
	again   time.Time // when it starts after it was killed; zero: it was not
	process *daemon
	wire    *coordtest.Wire
}

const (
	imageOld  = "ami-00000000000000001"
	imageGood = "ami-00000000000000002"
	imageBad  = "ami-0000000000000000b"
)

// inFleet runs a test in a fleet of its own.
func inFleet(t *testing.T, size fleetSize, members int, test func(f *fleet)) {
	t.Helper()
	wanted(t)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKIASIMULATED", "AWS_SECRET_ACCESS_KEY": canary, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "HTTP_PROXY": "", "HTTPS_PROXY": ""} {
		t.Setenv(name, value)
	}
	around, dial, reach := sdk.Around, transport.Dial, workload.Dial
	defer func() { sdk.Around, transport.Dial, workload.Dial = around, dial, reach }()
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, size, members)
		defer f.end()
		test(f)
	})
}

func newFleet(t *testing.T, size fleetSize, members int) *fleet {
	time.Sleep(time.Until(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)))
	f := &fleet{t: t, size: size, log: logFile(t), repo: newRepo(t), net: newListener(), hosts: map[string]*listener{}, images: map[string]string{}, nodes: map[string]*machine{}, mark: time.Now(), every: 10 * time.Second, killing: make(chan *daemon, 1)}
	f.git(nil, "config", "http.receivepack", "true")
	aws, err := awsemu.New(awsemu.Options{Clock: fleetClock{}, Timings: world.Realistic(), Throttle: true})
	if err != nil {
		t.Fatal(err)
	}
	f.aws = aws
	sdk.Around = func(httpbody.Doer) httpbody.Doer { return fleetClient{f} }
	transport.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return f.net.dial(ctx) }
	workload.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
		l := f.hosts[address]
		if l == nil {
			return nil, errNetwork
		}
		return l.dial(ctx)
	}
	for i := range size.clusters {
		l := &clusterListener{newListener(), i}
		f.hosts[l.Addr().String()] = l.listener
		f.clusters = append(f.clusters, workloadtest.On(t, l))
	}
	f.forge = newFleetForge(f)
	server := &http.Server{Handler: f.forge, ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, callerKey{}, c.(here).by)
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(f.net) }()
	t.Cleanup(func() {
		_ = server.Close()
		_ = f.net.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the forge ended with %v", err)
		}
	})
	if members > 1 {
		f.memory = coordtest.NewMemory()
	}
	for i := range members {
		f.members = append(f.members, &fleetMember{id: string(rune('a' + i)), dir: t.TempDir()})
	}
	return f
}

type fleetClock struct{}

func (fleetClock) Now() time.Time { return time.Now() }

// clusterListener is that of a cluster's API server, at an address of its own.
type clusterListener struct {
	*listener
	n int
}

func (l *clusterListener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6000 + l.n}
}

// configuration is what the daemons are started with.
func (f *fleet) configuration() string {
	var b strings.Builder
	b.WriteString(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state
listen: 127.0.0.1:0
sources:
- {name: pools, url: http://127.0.0.1:7000/platform/fleet.git, ref: {branch: main}}
forges:
- {type: gitea, url: http://127.0.0.1:7000/platform/fleet, tokenFile: token, pullRequests: {plan: never}, push: {tokenFile: push-token, for: [revert]}}
`)
	if f.memory != nil {
		b.WriteString("coordination: {keysFile: keys, etcd: {endpoints: [\"http://127.0.0.1:2379\"]}}\n")
	}
	b.WriteString("targets:\n")
	for i := range f.size.clusters {
		fmt.Fprintf(&b, "- {name: c%[1]d, path: overlays/c%[1]d, region: eu-west-1, kubeconfigFile: %[2]q}\n", i, f.clusters[i].Kubeconfig(f.t))
	}
	return b.String()
}

// start starts a member's process with the state of its directory, where none runs.
func (f *fleet) start(m *fleetMember) {
	if m.process != nil {
		return
	}
	keys := base64.StdEncoding.EncodeToString([]byte("k" + canary + canary)[:32])
	for name, text := range map[string]string{"token": canary + "-token", "push-token": pushToken, "keys": keys} {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text+"\n"), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	c, faults := config.Parse(filepath.Join(m.dir, "weir.yaml"), []byte(f.configuration()), config.Env{Getenv: os.Getenv})
	if c == nil {
		f.t.Fatal(faults)
	}
	m.starts++
	m.again = time.Time{}
	d := &daemon{id: fmt.Sprintf("%s-%d", m.id, m.starts), dir: m.dir, page: newListener(), dead: make(chan struct{}), done: make(chan error, 1)}
	m.process = d
	ctx, cancel := context.WithCancel(context.WithValue(f.t.Context(), callerKey{}, d))
	d.cancel = cancel
	o := app.Options{
		Config: c, Logger: f.logger(d.id), Version: "simulated", Clock: clock.By(time.Now),
		Getenv: func(name string) string { return map[string]string{"HOME": d.dir}[name] },
		Watch:  func(ctx context.Context, _ []string, _ func()) error { <-ctx.Done(); return nil },
		Listen: func(context.Context, string, string) (net.Listener, error) { return d.page, nil },
	}
	if f.memory != nil {
		m.wire = coordtest.NewWire(f.memory)
		o.Engine, o.Member = coord.New(m.wire, coord.Options{Clock: coordtest.NewClock()}), d.id
	}
	go func() {
		a, err := app.New(ctx, o)
		if err == nil {
			err = a.Run(ctx)
		}
		d.done <- err
	}()
	f.say("%s starts", d.id)
}

func (f *fleet) logger(id string) *slog.Logger {
	if f.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(f.log, nil)).With("daemon", id)
}

// say notes what happens.
func (f *fleet) say(format string, args ...any) {
	if f.log != nil {
		fmt.Fprintf(f.log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
	}
}

// stop stops a process as a service manager does.
func (f *fleet) stop(m *fleetMember) {
	m.again = time.Time{}
	if d := m.process; d != nil {
		m.process = nil
		d.cancel()
		err := <-d.done
		if err != nil && f.memory == nil && d.gone(f.t.Context()) == nil { // of who is killed meanwhile nobody asks
			f.t.Errorf("%s ended with %v", d.id, err)
		}
		f.say("%s has stopped", d.id)
	}
}

func (f *fleet) end() {
	for _, m := range f.members {
		f.stop(m)
	}
	for _, d := range f.dead {
		select {
		case <-d.done: // what it says is of no interest
		case <-time.After(time.Minute):
			f.t.Errorf("%s, of which nothing is answered, does not end", d.id)
		}
	}
}
