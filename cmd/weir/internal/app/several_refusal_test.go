package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/dynamo"
	"github.com/weir-gitops/weir/reconciler/coord/etcd"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/members"
)

// refusing is an engine that can be made to answer reads alone.
type refusing struct {
	open   func() coord.Store
	refuse func() (mend func())
	// says is the cause, and does what to do.
	says, does string
}

// fullEtcd is an etcd with a small quota.
func fullEtcd(t *testing.T) refusing {
	c := embed.NewConfig()
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.Dir, c.UnsafeNoFsync, c.LogLevel, c.LogOutputs = t.TempDir(), true, "fatal", []string{"/dev/null"}
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = any, any, any, any
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs, c.QuotaBackendBytes = 10, 100, 2<<20
	server, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	at := server.Clients[0].Addr().String()
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	return refusing{
		says: "database space exceeded", does: "etcdctl alarm disarm",
		open: func() coord.Store {
			s, err := etcd.Open(t.Context(), etcd.Config{Instance: "fleet", Endpoints: []string{at}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		refuse: func() func() {
			for i := 0; ; i++ {
				_, err := admin.Put(t.Context(), fmt.Sprint("others/", i), strings.Repeat("x", 256<<10))
				if errors.Is(err, rpctypes.ErrNoSpace) {
					break
				}
				if err != nil || i > 100 {
					t.Fatal(i, err)
				}
			}
			return func() {
				gone, err := admin.Delete(t.Context(), "others/", clientv3.WithPrefix())
				if err == nil {
					_, err = admin.Compact(t.Context(), gone.Header.Revision, clientv3.WithCompactPhysical())
				}
				if err == nil {
					_, err = admin.Defragment(t.Context(), at)
				}
				if err == nil {
					_, err = admin.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		},
	}
}

// table is one of DynamoDB, for the records of an instance.
type table struct {
	t      *testing.T
	client *dynamodb.Client
	name   string
}

func (s *several) table(t *testing.T) *table {
	t.Helper()
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", BaseEndpoint: &s.url, Credentials: credentials.NewStaticCredentialsProvider("X", "x", ""), Retryer: aws.NopRetryer{}})
	made := &table{t, client, "weir"}
	made.create()
	return made
}

func (of *table) create() {
	of.t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &of.name, BillingMode: types.BillingModePayPerRequest}
	for i, key := range []string{"pk", "sk"} {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &key, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS})
	}
	eventually(of.t, "the table", func() string {
		_, err := of.client.CreateTable(of.t.Context(), in)
		out, described := of.client.DescribeTable(of.t.Context(), &dynamodb.DescribeTableInput{TableName: &of.name})
		if described != nil || out.Table.TableStatus != types.TableStatusActive {
			return fmt.Sprint("it is not there: ", err, described)
		}
		return ""
	})
}

func (of *table) open() coord.Store {
	of.t.Helper()
	store, err := dynamo.New(of.t.Context(), of.client, dynamo.Config{Instance: "fleet", Table: of.name})
	if err != nil {
		of.t.Fatal(err)
	}
	return store
}

// deniedTable is a table of DynamoDB whose readers may lose the right to write.
func deniedTable(t *testing.T, s *several) refusing {
	return refusing{
		says: "is not authorized to perform: dynamodb:UpdateItem", does: "dynamodb:ConditionCheckItem", open: s.table(t).open,
		refuse: func() func() {
			return s.aws.Faults().Add(awsemu.Fault{
				Kind: awsemu.FailBefore, Service: "dynamodb", WritesOnly: true, Times: -1, Code: "AccessDeniedException",
				Message: "User: weir is not authorized to perform: dynamodb:UpdateItem on resource: weir",
			})
		},
	}
}

// logged is a log that a test reads while daemons write it.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// awsWrites are those to what is reconciled, and not to the engine.
func (s *several) awsWrites() (out []string) {
	for _, c := range s.aws.Calls() {
		if c.Write && c.Service != "dynamodb" {
			out = append(out, c.Operation)
		}
	}
	return out
}

// An engine that answers reads and takes no writes is one that is away: leases end, then nobody writes to AWS, everything says why and what to do, and when
// it is mended one member goes on. At no time do two own anything.
func TestAnEngineThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set: this test waits until leases end")
	}
	for name, engine := range map[string]func(*testing.T, *several) refusing{
		"etcd without space":         func(t *testing.T, _ *several) refusing { return fullEtcd(t) },
		"DynamoDB without the right": deniedTable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeveral(t)
			e := engine(t, s)
			said := &logged{}
			s.log = slog.New(slog.NewTextHandler(said, nil))
			first := e.open()
			s.giveIn(first, map[string]string{s.source(): "a", s.scope(): "b"})
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			commit := s.repo.Commit("first")
			a, b := s.memberOver("a", first), s.memberOver("b", e.open())
			defer a.stop()
			defer b.stop()
			converged(t, b.App, commit, 1)
			s.owned(s.source(), a)

			watching, stop := context.WithCancel(t.Context())
			var watch sync.WaitGroup
			watch.Go(func() {
				for ; watching.Err() == nil; time.Sleep(2 * time.Millisecond) {
					for _, key := range s.keys {
						one, two := a.member.Leases.Get(key), b.member.Leases.Get(key)
						if one != nil && two != nil && one.Fence.MayBegin() == nil && two.Fence.MayBegin() == nil {
							t.Errorf("two own %s", key)
							return
						}
					}
				}
			})
			defer watch.Wait()
			defer stop()

			mend := e.refuse()
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
			second := s.repo.Commit("second")
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
					if page := m.get(t, "/members", nil); !strings.Contains(v.Engine.Refused, e.says) || !strings.Contains(v.Engine.Refused, e.does) || v.Engine.Error != "" ||
						!strings.Contains(page, "The engine rejects writes.") || !strings.Contains(page, e.does) {
						return fmt.Sprintf("%+v", v.Engine)
					}
					return ""
				})
				if text := m.get(t, "/metrics", nil); !strings.Contains(text, "\nweir_coordination_writes_refused_seconds ") || strings.Contains(text, "\nweir_coordination_writes_refused_seconds 0\n") {
					t.Error("the metrics lack it")
				}
				if !slices.ContainsFunc(m.current.Activity.Events(), func(ev events.Event) bool { return ev.Kind == "member-lost" && strings.Contains(ev.Text, e.says) }) {
					t.Error("no event says it")
				}
			}
			if text := said.String(); !strings.Contains(text, e.says) || !strings.Contains(text, e.does) {
				t.Error("the log does not say it")
			}
			if code, text := a.says(t, commands.SuspendPath, `{"target":"prod","reason":"night","for":"1h"}`); code == http.StatusOK || !strings.Contains(text, e.does) {
				t.Errorf("a suspension is answered with %d: %s", code, text)
			}
			time.Sleep(3 * time.Second)
			if wrote := s.awsWrites(); len(wrote) > byHand {
				t.Errorf("written without a lease: %v", wrote)
			}

			mend()
			for _, m := range []*member{a, b} {
				converged(t, m.App, second, 1)
				eventually(t, "that it takes writes", func() string {
					var v members.View
					if m.get(t, "/api/v1/members", &v); v.Engine.Refused != "" || len(v.Unowned()) > 0 || len(v.Members) != 2 {
						return fmt.Sprintf("%+v", v)
					}
					return ""
				})
			}
			if got := s.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>4</MaxSize>") {
				t.Errorf("AWS has %s", got)
			}
			s.told(second, "fleet/apply", "success", "")
			s.eachStatusOnce()
		})
	}
}

// says posts a command as it is, and returns what is answered.
func (m *member) says(t *testing.T, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.PageURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(commands.Header, "1")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
