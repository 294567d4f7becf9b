package dynamo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/model/modeltest"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/coord/dynamo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const region = "eu-west-1"

// env is DynamoDB: the emulator, or what stands at an address.
type env struct {
	t      testing.TB
	client *dynamodb.Client
	emu    *awsemu.Server
}

func start(t testing.TB) *env {
	t.Helper()
	emu, err := awsemu.New(awsemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	e := at(t, server.URL)
	e.emu = emu
	return e
}

// at holds each request against AWS's model of DynamoDB.
func at(t testing.TB, endpoint string) *env {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	client := dynamodb.New(dynamodb.Options{
		Region: region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""), Retryer: aws.NopRetryer{},
		HTTPClient: httpbody.Client{Next: &modeltest.Client{Next: &http.Client{Transport: transport}, Request: func(err error) { t.Error(err) }}},
	})
	return &env{t: t, client: client}
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

var tables atomic.Int64

func (e *env) table(keys ...string) string {
	e.t.Helper()
	name := fmt.Sprint("weir", tables.Add(1))
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i, key := range keys {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &key, KeyType: []types.KeyType{"HASH", "RANGE"}[i]})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key, AttributeType: "S"})
	}
	_, err := e.client.CreateTable(context.Background(), in)
	e.must(err)
	for range 200 {
		out, err := e.client.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &name})
		e.must(err)
		if out.Table.TableStatus == types.TableStatusActive {
			return name
		}
		time.Sleep(20 * time.Millisecond)
	}
	e.t.Fatal("the table does not become ACTIVE")
	return ""
}

// replicate gives a table a replica in another region.
func (e *env) replicate(table string) {
	e.t.Helper()
	e.replicas(table, types.ReplicationGroupUpdate{Create: &types.CreateReplicationGroupMemberAction{RegionName: aws.String("eu-central-1")}})
}

// replicas changes a table's, once it is ready for that.
func (e *env) replicas(table string, update types.ReplicationGroupUpdate) {
	e.t.Helper()
	var err error
	for range 100 {
		if _, err = e.client.UpdateTable(e.t.Context(), &dynamodb.UpdateTableInput{TableName: &table, ReplicaUpdates: []types.ReplicationGroupUpdate{update}}); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	e.must(err)
}

func (e *env) open(table string, clock coord.Clock) *dynamo.Store {
	e.t.Helper()
	s, err := dynamo.New(context.Background(), e.client, dynamo.Config{Instance: "prod", Table: table, Clock: clock})
	e.must(err)
	return s
}

func (e *env) scan(table string) (items []map[string]types.AttributeValue) {
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := e.client.Scan(context.Background(), in)
		e.must(err)
		items = append(items, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items
		}
	}
}

func (e *env) data(t *testing.T) coordtest.Data {
	table := e.table("pk", "sk")
	wipe := func() {
		for _, i := range e.scan(table) {
			_, err := e.client.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{"pk": i["pk"], "sk": i["sk"]}})
			e.must(err)
		}
	}
	return coordtest.Data{
		Store: func(clock coord.Clock) coord.Store { return e.open(table, clock) },
		Wipe:  wipe,
		Save: func() func() {
			saved := e.scan(table)
			return func() {
				wipe()
				for _, i := range saved {
					_, err := e.client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: i})
					e.must(err)
				}
			}
		},
	}
}

func TestContract(t *testing.T) {
	e := start(t)
	coordtest.Contract(t, coordtest.Back{Data: e.data, Lease: 3 * time.Second})
}

// TestContractElsewhere runs against what others made of DynamoDB: moto server, where it is
// installed. dynalite has no transactions, which all that is written here goes by.
func TestContractElsewhere(t *testing.T) {
	if os.Getenv("WEIR_CONTRACT_MOTO") != "1" {
		t.Skip("set WEIR_CONTRACT_MOTO=1 to start moto server and test it")
	}
	path, err := exec.LookPath("moto_server")
	if err != nil {
		t.Skip("moto_server is not installed")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, number, _ := net.SplitHostPort(address)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(path, "-p", number)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it may be a script that starts another process
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	})
	for range 600 {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	// It undoes a transaction that fails by putting back what was there before it, and with
	// it what others wrote meanwhile: so one request at a time.
	var one sync.Mutex
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	e := at(t, proxy.URL)
	coordtest.Contract(t, coordtest.Back{Data: e.data, Lease: 3 * time.Second})
}

// TestOpenExplains has tables that cannot be used, and what is said of them.
func TestOpenExplains(t *testing.T) {
	e := start(t)
	wrong := e.table("id")
	good := e.table("pk", "sk")
	replicated := e.table("pk", "sk")
	e.replicate(replicated)
	session, err := coord.New(e.open(good, nil), coord.Options{}).Join(t.Context(), coord.Member{Name: "a"}, coord.TTL)
	e.must(err)
	if engine := session.Engine(); !strings.Contains(engine, ".") {
		t.Errorf("engine %q does not say which table it is", engine)
	}
	for table, want := range map[string]string{
		"none":     "there is no table none in eu-west-1: create it with CloudFormation from deploy/coordination/table.yaml, or: aws dynamodb create-table --region eu-west-1 --table-name none --billing-mode PAY_PER_REQUEST",
		wrong:      "has the keys id (HASH, S), and weir needs pk (HASH, S) and sk (RANGE, S)",
		replicated: "has replicas in other regions (eu-central-1)",
		good:       `belongs to instance "prod", and this is instance "staging"`,
	} {
		_, err := dynamo.New(t.Context(), e.client, dynamo.Config{Instance: "staging", Table: table})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", table, err, want)
		}
	}
	denies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: x is not authorized to perform: dynamodb:DescribeTable"}`)
	}))
	defer denies.Close()
	_, err = dynamo.New(t.Context(), at(t, denies.URL).client, dynamo.Config{Instance: "prod", Table: "weir"})
	for _, want := range []string{"not authorized", `"dynamodb:ConditionCheckItem"`, "arn:aws:dynamodb:eu-west-1:*:table/weir"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The statement to add names the table as AWS does where weir runs: by what AWS says, or by the region.
func TestTheStatementNamesThePartition(t *testing.T) {
	for name, tc := range map[string]struct{ region, says, want string }{
		"China":            {"cn-north-1", "no", "arn:aws-cn:dynamodb:cn-north-1:*:table/weir"},
		"GovCloud":         {"us-gov-west-1", "no", "arn:aws-us-gov:dynamodb:us-gov-west-1:*:table/weir"},
		"elsewhere":        {"eu-west-1", "no", "arn:aws:dynamodb:eu-west-1:*:table/weir"},
		"as AWS says":      {"us-iso-east-1", "User: arn:aws-iso:sts::1:assumed-role/r/s is not authorized to perform: dynamodb:PutItem", "arn:aws-iso:dynamodb:us-iso-east-1:*:table/weir"},
		"in quotes by AWS": {"eu-west-1", `on resource: "arn:aws:dynamodb:eu-west-1:1:table/weir"`, "arn:aws:dynamodb:eu-west-1:*:table/weir"},
	} {
		t.Run(name, func(t *testing.T) {
			denies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazon.coral.service#AccessDeniedException", "Message": tc.says})
			}))
			defer denies.Close()
			client := dynamodb.New(dynamodb.Options{Region: tc.region, BaseEndpoint: &denies.URL, Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1, HTTPClient: denies.Client()})
			_, err := dynamo.New(t.Context(), client, dynamo.Config{Instance: "prod", Table: "weir"})
			if err == nil || !strings.Contains(err.Error(), `"`+tc.want+`"`) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestConflictsAreNoLoss: a transaction that others are in the way of is tried again.
func TestConflictsAreNoLoss(t *testing.T) {
	e := start(t)
	refuse := atomic.Int64{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := r.Header.Get("X-Amz-Target")
		if refuse.Load() > 0 && (strings.HasSuffix(call, "TransactWriteItems") || strings.HasSuffix(call, "UpdateItem")) {
			refuse.Add(-1)
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			if strings.HasSuffix(call, "UpdateItem") {
				fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"Transaction is ongoing for the item"}`)
			} else {
				fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict, None]","CancellationReasons":[{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"},{"Code":"None"}]}`)
			}
			return
		}
		e.emu.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	through := at(t, proxy.URL)
	engine := coord.New(through.open(e.table("pk", "sk"), nil), coord.Options{})
	s, err := engine.Join(t.Context(), coord.Member{Name: "a"}, time.Minute)
	e.must(err)
	refuse.Store(3)
	o, err := s.Take(t.Context(), "scope", coord.Owner{})
	e.must(err)
	refuse.Store(3)
	_, err = s.Write(t.Context(), coord.Write{Held: []coord.Owner{o}, Ops: []coord.Op{{Key: "k", Value: []byte("v")}}})
	e.must(err)
	refuse.Store(3)
	e.must(s.Renew(t.Context()))
	if left := refuse.Load(); left != 0 {
		t.Errorf("%d conflicts were not met", left)
	}
}
