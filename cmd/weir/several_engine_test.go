package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/dynamo"
	"github.com/weir-gitops/weir/reconciler/coord/etcd"
)

// engineProcess is what the daemons share. It can be stopped, and started again with what it
// holds.
type engineProcess interface {
	start()
	stop()
	// at is its address, and section what a daemon's configuration says of it that reaches it
	// at another one.
	at() string
	section(address string) string
	// open opens it as a member does that is not behind a relay.
	open(context.Context) (*coord.Engine, error)
}

func newEngineProcess(t testing.TB) engineProcess {
	switch name := cmp.Or(os.Getenv("WEIR_SEVERAL_ENGINE"), "etcd"); name {
	case "etcd":
		return newEtcdProcess(t)
	case "dynamodb":
		return newTableProcess(t)
	default:
		t.Fatalf("WEIR_SEVERAL_ENGINE is etcd or dynamodb, and not %s", name)
		return nil
	}
}

// tableProcess is a table of an embedded DynamoDB, over HTTP.
type tableProcess struct {
	t       testing.TB
	address string
	aws     *awsemu.Server
	client  *dynamodb.Client

	mu     sync.Mutex
	server *http.Server
}

const severalTable = "weir-several"

func newTableProcess(t testing.TB) *tableProcess {
	address, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	aws, err := awsemu.New(awsemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + address
	e := &tableProcess{t: t, address: address, aws: aws, client: dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("OBSERVER", "x", ""),
	})}
	e.start()
	t.Cleanup(e.stop)
	in := &dynamodb.CreateTableInput{TableName: new(severalTable), BillingMode: types.BillingModePayPerRequest}
	for key, kind := range map[string]types.KeyType{"pk": types.KeyTypeHash, "sk": types.KeyTypeRange} {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &key, KeyType: kind})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS})
	}
	slices.SortFunc(in.KeySchema, func(a, b types.KeySchemaElement) int { return strings.Compare(string(a.KeyType), string(b.KeyType)) })
	if _, err := e.client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		out, err := e.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: in.TableName})
		if err != nil {
			t.Fatal(err)
		}
		if out.Table.TableStatus == types.TableStatusActive {
			return e
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the table does not become ACTIVE")
	return nil
}

func (e *tableProcess) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return
	}
	var listen net.ListenConfig
	l, err := listen.Listen(context.Background(), "tcp", e.address)
	if err != nil {
		e.t.Errorf("start DynamoDB: %v", err)
		return
	}
	server := &http.Server{Handler: e.aws, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	e.server = server
}

// stop ends it in the middle of what it does: what was asked for may have been done, and
// nobody hears of it.
func (e *tableProcess) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		_ = e.server.Close()
		e.server = nil
	}
}

func (e *tableProcess) at() string { return e.address }

func (e *tableProcess) section(address string) string {
	return fmt.Sprintf("dynamodb: {table: %s, region: eu-west-1, endpointURL: \"http://%s\"}", severalTable, address)
}

func (e *tableProcess) open(ctx context.Context) (*coord.Engine, error) {
	store, err := dynamo.New(ctx, e.client, dynamo.Config{Instance: "several", Table: severalTable})
	if err != nil {
		return nil, err
	}
	return coord.New(store, coord.Options{}), nil
}

// etcdProcess is an etcd.
type etcdProcess struct {
	t       testing.TB
	address string
	dir     string

	mu     sync.Mutex
	server *embed.Etcd
}

func newEtcdProcess(t testing.TB) *etcdProcess {
	address, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	e := &etcdProcess{t: t, address: address, dir: t.TempDir()}
	e.start()
	t.Cleanup(e.stop)
	return e
}

func (e *etcdProcess) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.LogOutputs = e.dir, "fatal", []string{"/dev/null"}
	cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: e.address}}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	peers, err := ports.Address()
	if err != nil {
		e.t.Error(err)
		return
	}
	cfg.ListenPeerUrls = []url.URL{{Scheme: "http", Host: peers}}
	cfg.AdvertisePeerUrls = cfg.ListenPeerUrls
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs, cfg.UnsafeNoFsync = 50, 500, true
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		e.t.Errorf("start etcd: %v", err)
		return
	}
	<-server.Server.ReadyNotify()
	e.server = server
}

func (e *etcdProcess) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		e.server.Close()
		e.server = nil
	}
}

func (e *etcdProcess) at() string { return e.address }

func (e *etcdProcess) section(address string) string {
	return fmt.Sprintf("etcd: {endpoints: [\"http://%s\"]}", address)
}

func (e *etcdProcess) open(ctx context.Context) (*coord.Engine, error) {
	store, err := etcd.Open(ctx, etcd.Config{Instance: "several", Endpoints: []string{e.address}})
	if err != nil {
		return nil, err
	}
	return coord.New(store, coord.Options{}), nil
}
