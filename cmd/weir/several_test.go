package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/status/report"
)

// TestSeveralProcesses lets three processes share the scopes of an instance over etcd while they are killed, stopped for longer than their leases and
// woken, cut off from the engine, the engine is restarted, and one of them has a clock that is an hour off; and Git goes on. The test compares the
// writes that reached AWS with the engine's owners: no member began a write in a scope that it did not own, no group was rolled twice for one commit,
// and in the end AWS is what Git says. It runs with WEIR_SEVERAL=12s or longer, and SEED=7: from a minute on with 60 scopes and 240 pools. make soak
// runs it for ten minutes.
func TestSeveralProcesses(t *testing.T) {
	long := os.Getenv("WEIR_SEVERAL")
	if long == "" {
		t.Skip("processes, for a minute at least: set WEIR_SEVERAL=12s, or longer")
	}
	length, err := time.ParseDuration(long)
	if err != nil {
		t.Fatal(err)
	}
	size := crowdSize{servers: 1, regions: 6, pools: 2}
	if length >= time.Minute {
		size = crowdSize{servers: 3, regions: 20, pools: 4}
	}
	c := newCrowd(t, size)
	for _, m := range c.members {
		m.start()
	}
	c.await("the first commit is applied", 3*time.Minute, c.applied)
	c.trouble(length)
	for _, m := range c.members {
		m.calm()
	}
	c.engine.start()
	c.await("the last commit is applied", 5*time.Minute, c.applied)
	c.atRest()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fault := range c.faults() {
		t.Error(fault)
	}
	t.Log(&c.evidence)
}

type crowdSize struct {
	servers, regions, pools int
	// resting is a crowd whose daemons look at everything as rarely as by default, alone one
	// of a single daemon.
	resting, alone bool
}

// crowd are the processes, and the world around them.
type crowd struct {
	t       testing.TB
	size    crowdSize
	random  *rand.Rand
	repo    *sourcetest.Repo
	engine  engineProcess
	clouds  []*cloud
	members []*weirProcess
	commit  int

	mu sync.Mutex
	evidence
}

// cloud is one AWS, and its address.
type cloud struct {
	emulator *awsemu.Server
	server   *httptest.Server
	number   int
}

var regionNames = []string{
	"us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1", "eu-north-1", "eu-south-1",
	"ap-south-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "sa-east-1", "ca-central-1", "me-south-1", "af-south-1",
}

func newCrowd(t testing.TB, size crowdSize) *crowd {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	c := &crowd{t: t, size: size, random: rand.New(rand.NewPCG(seed, 1)), repo: sourcetest.New(t), engine: newEngineProcess(t)}
	for i := range size.servers {
		emulator, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
		if err != nil {
			t.Fatal(err)
		}
		cl := &cloud{emulator: emulator, number: i}
		cl.server = httptest.NewServer(c.listening(cl))
		t.Cleanup(cl.server.Close)
		c.clouds = append(c.clouds, cl)
	}
	c.push()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))), 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"A", "B", "C"}
	if size.alone {
		names = names[:1]
	}
	for i, name := range names {
		m := &weirProcess{crowd: c, name: name, dir: t.TempDir(), relay: newRelay(t, c.engine.at())}
		if i == 2 && !size.resting {
			m.skew = time.Hour
		}
		m.configure(keys)
		c.members = append(c.members, m)
		t.Cleanup(m.kill)
	}
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(ctx) })
	t.Cleanup(func() { stop(); watching.Wait() })
	return c
}

// listening notes who wants to change what before AWS hears of it.
func (c *crowd) listening(cl *cloud) http.Handler {
	signed := regexp.MustCompile(`Credential=MEMBER([A-Z])/\d+/([a-z0-9-]+)/([a-z0-9-]+)/`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		by := signed.FindStringSubmatch(r.Header.Get("Authorization"))
		if by == nil {
			cl.emulator.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a request that was cut while it was sent has no effect
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		a := attempt{at: at, member: by[1], scope: membership.ScopeKey("aws", "000000000000", by[2], cl.server.URL)}
		var detail string
		a.op, detail = operationOf(r, body)
		a.detail = detail
		changes := !reading.MatchString(a.op)
		answer := httptest.NewRecorder()
		cl.emulator.ServeHTTP(answer, r)
		a.refused = answer.Code >= 400
		if changes {
			c.mu.Lock()
			c.attempts = append(c.attempts, a)
			c.mu.Unlock()
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// reading are the operations that change nothing.
var reading = regexp.MustCompile(`^(Describe|List|Get|AssumeRole$|GET )`)

func operationOf(r *http.Request, body []byte) (op, detail string) {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndexByte(target, '.')+1:], ""
	}
	form, err := url.ParseQuery(string(body))
	if err == nil && form.Get("Action") != "" {
		version := form.Get("DesiredConfiguration.LaunchTemplate.Version")
		return form.Get("Action"), form.Get("AutoScalingGroupName") + " " + version
	}
	return r.Method + " " + r.URL.Path, ""
}

// push makes a commit that rolls every group.
func (c *crowd) push() {
	c.commit++
	types := []string{"m5.large", "m6i.large", "c5.large", "c6i.large"}
	files := map[string]string{}
	for i := range c.targets() {
		var pools strings.Builder
		for j := range c.size.pools {
			fmt.Fprintf(&pools, severalPool, fmt.Sprintf("pool-%d", j), types[c.commit%len(types)])
		}
		files[fmt.Sprintf("t%02d/pools.yaml", i)] = pools.String()
		files[fmt.Sprintf("t%02d/kustomization.yaml", i)] = "resources: [pools.yaml]\n"
	}
	c.repo.Write(files)
	c.repo.Commit(fmt.Sprintf("commit %d", c.commit))
}

const severalPool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: %[1]s}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: %[1]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: %[1]s}
spec:
  minSize: 1
  maxSize: 3
  awsLaunchTemplate:
    instanceType: %[2]s
    ami: {eksLookupType: AmazonLinux2023}
---
`

func (c *crowd) targets() []string {
	var out []string
	for _, cl := range c.clouds {
		for _, region := range regionNames[:c.size.regions] {
			out = append(out, fmt.Sprintf("  - {name: t%02d, source: pools, path: t%02[1]d, region: %s, endpointURL: %q}\n", len(out), region, cl.server.URL))
		}
	}
	return out
}

// watch asks the engine again and again who owns what, past the relays.
func (c *crowd) watch(ctx context.Context) {
	for ctx.Err() == nil {
		e, err := c.engine.open(ctx)
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for ctx.Err() == nil {
			s := sample{sent: time.Now(), owners: map[string]string{}}
			asking, cancel := context.WithTimeout(ctx, 2*time.Second)
			owners, err := e.Owners(asking)
			cancel()
			if err != nil {
				break
			}
			s.received = time.Now()
			for _, o := range owners {
				if !o.Released {
					s.owners[o.Key] = o.Member
				}
			}
			c.mu.Lock()
			c.saw(s)
			c.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
		}
		_ = e.Close()
	}
}

// trouble is what happens to the processes, and to Git meanwhile.
func (c *crowd) trouble(length time.Duration) {
	end := time.Now().Add(length)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	kinds := []string{"kill", "pause", "cut", "engine", "push"}
	for n := 0; n == 0 || time.Now().Before(end); n++ {
		m := c.members[c.random.IntN(len(c.members))]
		kind := kinds[c.random.IntN(len(kinds))]
		if n < 2 {
			kind = []string{"kill", "push"}[n] // what is pushed needs those who take over
		}
		long := time.Duration(5+c.random.IntN(20)) * time.Second
		c.t.Logf("%s: %s %s for %s", time.Now().Format("15:04:05"), kind, m.name, long)
		var undo func()
		switch kind {
		case "push":
			c.push()
		case "kill":
			m.kill()
			undo = m.start
		case "pause":
			m.signal(syscall.SIGSTOP)
			undo = func() { m.signal(syscall.SIGCONT) }
		case "cut":
			m.relay.cut(true)
			undo = func() { m.relay.cut(false) }
		case "engine":
			c.engine.stop()
			time.Sleep(time.Duration(c.random.IntN(5000)) * time.Millisecond)
			c.engine.start()
		}
		if undo != nil {
			waiting.Go(func() { time.Sleep(long); undo() })
		}
		time.Sleep(time.Duration(1+c.random.IntN(8)) * time.Second)
	}
}

// applied says what is missing until each process shows that AWS is what the last commit
// says.
func (c *crowd) applied() string {
	tip := c.repo.Tip("main")
	for _, m := range c.members {
		var shown struct {
			Targets []struct {
				Name, Phase, Revision string
				Pools                 int
			}
		}
		if err := m.get("/api/v1/targets", &shown); err != nil {
			return m.name + ": " + err.Error()
		}
		if len(shown.Targets) != len(c.targets()) {
			return fmt.Sprintf("%s shows %d targets", m.name, len(shown.Targets))
		}
		for _, target := range shown.Targets {
			if target.Phase != string(report.Converged) || target.Revision != tip || target.Pools != c.size.pools {
				return fmt.Sprintf("%s: target %s is %s at %.7s with %d pools, not at %.7s", m.name, target.Name, target.Phase, target.Revision, target.Pools, tip)
			}
		}
	}
	return ""
}

func (c *crowd) await(what string, within time.Duration, missing func() string) {
	c.t.Helper()
	start, last := time.Now(), ""
	for time.Since(start) < within {
		if last = missing(); last == "" {
			c.t.Logf("%s after %s", what, time.Since(start).Round(time.Millisecond))
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	for _, m := range c.members {
		c.t.Logf("%s:\n%s", m.name, m.lastLines(60))
	}
	c.t.Fatalf("%s: not after %s: %s", what, within, last)
}

// atRest fails if AWS is still written to.
func (c *crowd) atRest() {
	c.mu.Lock()
	before := len(c.attempts)
	c.mu.Unlock()
	time.Sleep(7 * time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.attempts[before:] {
		c.t.Errorf("at rest %s calls %s in %s", a.member, a.op, a.scope)
	}
}
