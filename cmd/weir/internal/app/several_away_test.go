package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/etcd"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/members"
)

// cluster is an etcd of three members on this machine, each of which can be stopped and started again with its data.
type cluster struct {
	t       *testing.T
	configs []*embed.Config
	mu      sync.Mutex
	servers []*embed.Etcd
}

// clusterStopped is when a cluster was stopped last. Its members, in one process, keep connections to each other for peersEnd after that.
var clusterStopped atomic.Pointer[time.Time]

const peersEnd = 8 * time.Second

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: make([]*embed.Etcd, 3)}
	free := func() []url.URL {
		address, err := ports.Address()
		if err != nil {
			t.Fatal(err)
		}
		return []url.URL{{Scheme: "http", Host: address}}
	}
	var all []string
	for i := range c.servers {
		conf := embed.NewConfig()
		conf.Name, conf.Dir, conf.UnsafeNoFsync, conf.LogLevel, conf.LogOutputs = fmt.Sprint("e", i), t.TempDir(), true, "fatal", []string{"/dev/null"}
		clients, peers := free(), free()
		conf.ListenClientUrls, conf.AdvertiseClientUrls, conf.ListenPeerUrls, conf.AdvertisePeerUrls = clients, clients, peers, peers
		conf.TickMs, conf.ElectionMs = 100, 1000
		all = append(all, conf.Name+"="+peers[0].String())
		c.configs = append(c.configs, conf)
	}
	for _, conf := range c.configs {
		conf.InitialCluster = strings.Join(all, ",")
	}
	c.start(0, 1, 2)
	t.Cleanup(func() {
		c.stop(0, 1, 2)
		now := time.Now()
		clusterStopped.Store(&now)
	})
	return c
}

func (c *cluster) start(which ...int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range which {
		server, err := embed.StartEtcd(c.configs[i])
		if err != nil {
			c.t.Fatal(err)
		}
		c.servers[i] = server
	}
	for _, i := range which {
		<-c.servers[i].Server.ReadyNotify()
	}
}

func (c *cluster) stop(which ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range which {
		if c.servers[i] != nil {
			c.servers[i].Close()
			c.servers[i] = nil
		}
	}
}

// leader is the number of the member that leads.
func (c *cluster) leader() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.servers {
		if s != nil && s.Server.Leader() == s.Server.MemberID() {
			return i
		}
	}
	c.t.Fatal("nobody leads")
	return 0
}

func (c *cluster) open() coord.Store {
	c.t.Helper()
	var endpoints []string
	for _, conf := range c.configs {
		endpoints = append(endpoints, conf.ListenClientUrls[0].String())
	}
	s, err := etcd.Open(c.t.Context(), etcd.Config{Instance: "fleet", Endpoints: endpoints})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.Close() })
	return s
}

// neverTwo fails if two members may write in a scope at once, until it is stopped.
func (s *several) neverTwo(a, b *member) (stop func()) {
	watching, end := context.WithCancel(s.t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ; watching.Err() == nil; time.Sleep(2 * time.Millisecond) {
			for _, key := range s.keys {
				one, two := a.member.Leases.Get(key), b.member.Leases.Get(key)
				if one != nil && two != nil && one.Fence.MayBegin() == nil && two.Fence.MayBegin() == nil {
					s.t.Errorf("two own %s", key)
					return
				}
			}
		}
	})
	return func() { end(); watch.Wait() }
}

// away is an engine that can go away altogether.
type away struct {
	open func() coord.Store
	// goes makes it, and comes is the way back.
	goes func() (comes func())
	// lose, if any, takes from it what it can do without.
	lose func()
	// says is the cause, and does what to do.
	says, does string
}

// An engine of which nothing is heard, as an etcd without a quorum, or a table that is throttled whatever is asked: leases end, nobody writes to AWS,
// everything says why and what to do, what there was is shown on, and when the engine is back members go on with the same records. One member of etcd less
// is nothing: nobody loses a lease.
func TestAnEngineThatIsAway(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set: this test waits until leases end")
	}
	for name, engine := range map[string]func(*testing.T, *several) away{
		"etcd without a quorum": func(t *testing.T, _ *several) away {
			c := startCluster(t)
			gone := 0
			return away{
				open: c.open, says: "no leader", does: "etcdctl endpoint status",
				lose: func() { gone = c.leader(); c.stop(gone) },
				goes: func() func() {
					other := (gone + 1) % 3
					c.stop(other)
					return func() { c.start(gone, other) }
				},
			}
		},
		"DynamoDB throttled": func(t *testing.T, s *several) away {
			return away{
				open: s.table(t).open, says: "is throttled", does: "--billing-mode PAY_PER_REQUEST",
				goes: func() func() {
					return s.aws.Faults().Add(awsemu.Fault{Kind: awsemu.Throttled, Service: "dynamodb", Times: -1})
				},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeveral(t)
			e := engine(t, s)
			said := &logged{}
			s.log = slog.New(slog.NewTextHandler(said, nil))
			s.extra = "- {name: held, path: overlays/held, region: eu-west-1}\n"
			first := e.open()
			s.giveIn(first, map[string]string{s.source(): "a", s.scope(): "b"})
			s.repo.Write(fleetOf("m5.large", "held"))
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			commit := s.repo.Commit("first")
			a, b := s.memberOver("a", first), s.memberOver("b", e.open())
			defer a.stop()
			defer b.stop()
			converged(t, b.App, commit, 1)
			s.owned(s.source(), a)
			s.owned(s.scope(), b)
			defer s.neverTwo(a, b)()
			if _, err := a.recorder.Suspend(gates.Suspension{Target: "held", Reason: "incident", By: "somebody"}, time.Hour); err != nil {
				t.Fatal(err)
			}

			leases := []*coord.Lease{a.member.Leases.Get(s.source()), b.member.Leases.Get(s.scope())}
			if e.lose != nil {
				e.lose()
				s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
				commit = s.repo.Commit("second")
				converged(t, b.App, commit, 1)
				time.Sleep(coord.TTL + 2*time.Second)
				if now := []*coord.Lease{a.member.Leases.Get(s.source()), b.member.Leases.Get(s.scope())}; !slices.Equal(now, leases) {
					t.Errorf("leases went with one of three members: %v, before %v", now, leases)
				}
			}

			comes := e.goes()
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
			third := s.repo.Commit("third")
			for _, m := range []*member{a, b} {
				eventually(t, "the end of the lease", func() string {
					if m.member.Keeper.Session() != nil || m.member.Leases.Get(s.scope()) != nil || m.member.Leases.Get(s.source()) != nil {
						return "it goes on"
					}
					return ""
				})
			}
			s.aws.ResetCalls()
			s.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=9") // by hand
			byHand := len(s.awsWrites())
			for _, m := range []*member{a, b} {
				eventually(t, "what is shown", func() string {
					var v members.View
					m.get(t, "/api/v1/members", &v)
					if page := m.get(t, "/members", nil); !strings.Contains(v.Engine.Error, e.says) || !strings.Contains(v.Engine.Error, e.does) ||
						!strings.Contains(page, "The engine does not answer.") || !strings.Contains(page, e.does) {
						return fmt.Sprintf("%+v", v.Engine)
					}
					return ""
				})
				if text := m.get(t, "/readyz", nil); !strings.HasPrefix(text, "ready") {
					t.Error(text)
				}
				if r, _ := m.current.Targets.Find("prod"); r.Last == nil || r.Last.Revision != commit {
					t.Errorf("what was seen last is not shown: %+v", r.Last)
				}
				if !slices.ContainsFunc(m.current.Activity.Events(), func(ev events.Event) bool { return ev.Kind == "member-lost" }) {
					t.Error("no event says it")
				}
				if code, text := m.says(t, commands.ResumePath, `{"target":"held"}`); code != http.StatusServiceUnavailable || !strings.Contains(text, "stored") {
					t.Errorf("a command is answered with %d: %s", code, text)
				}
			}
			if text := said.String(); !strings.Contains(text, e.says) || !strings.Contains(text, e.does) {
				t.Error("the log does not say it")
			}
			time.Sleep(3 * time.Second)
			if wrote := s.awsWrites(); len(wrote) > byHand {
				t.Errorf("written without a lease: %v", wrote)
			}
			if calls := s.aws.Calls(); slices.ContainsFunc(calls, func(c awsemu.Call) bool { return !c.Write && c.Service != "dynamodb" }) {
				t.Error("AWS is read while nobody owns anything")
			}

			comes()
			for _, m := range []*member{a, b} {
				converged(t, m.App, third, 1)
				eventually(t, "that it answers", func() string {
					var v members.View
					if m.get(t, "/api/v1/members", &v); v.Engine.Error != "" || v.Engine.Refused != "" || len(v.Unowned()) > 0 || len(v.Members) != 2 {
						return fmt.Sprintf("%+v", v)
					}
					return ""
				})
				if r := m.recorder.Read(); r.Lost != nil || len(r.Suspensions) != 1 {
					t.Errorf("the records: %+v", r)
				}
			}
			if got := s.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>5</MaxSize>") {
				t.Errorf("AWS has %s", got)
			}
			s.told(third, "fleet/apply", "success", "")
			s.eachStatusOnce()
		})
	}
}
