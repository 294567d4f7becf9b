package awsemu_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestDynamoDBTables: a table's life on the clock, and what is refused in between.
func TestDynamoDBTables(t *testing.T) {
	d := startTable(t, awsemu.Options{Quotas: map[string]int{"dynamodb-tables": 3}})
	status := func(name string) types.TableStatus {
		return must(d.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name}))(t).Table.TableStatus
	}
	provisioned := &dynamodb.CreateTableInput{
		TableName: aws.String("other"), ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(2)},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("n"), KeyType: "HASH"}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("n"), AttributeType: "N"}},
		Tags:                 []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}},
	}
	made := must(d.CreateTable(ctx, provisioned))(t).TableDescription
	if made.TableStatus != "CREATING" || *made.ProvisionedThroughput.WriteCapacityUnits != 2 || made.BillingModeSummary != nil {
		t.Errorf("made %+v", made)
	}
	key := item{"n": number("1")}
	_, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("other"), Item: key})
	wantCode(t, err, "ResourceNotFoundException")
	_, err = d.CreateTable(ctx, provisioned)
	wantError(t, err, "ResourceInUseException", "Table already exists: other")
	_, err = d.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("other")})
	wantError(t, err, "ResourceInUseException", "Table is being created: other")
	d.advance(time.Second)
	must(d.PutItem(ctx, &dynamodb.PutItemInput{TableName: made.TableArn, Item: key}))(t)

	// DescribeTable reports a replica. weir checks that a table has none.
	must(d.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: table, ReplicaUpdates: []types.ReplicationGroupUpdate{{Create: &types.CreateReplicationGroupMemberAction{RegionName: aws.String("eu-central-1")}}}}))(t)
	if status(*table) != "UPDATING" {
		t.Error("the table is not being changed")
	}
	d.put(at("a", "a")) // which does not keep items from being written
	d.advance(6 * time.Hour)
	one := must(d.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: table}))(t).Table
	if len(one.Replicas) != 1 || one.Replicas[0].ReplicaStatus != "ACTIVE" || *one.Replicas[0].RegionName != "eu-central-1" || one.BillingModeSummary.BillingMode != "PAY_PER_REQUEST" || *one.ItemCount != 1 {
		t.Errorf("table = %+v", one)
	}
	must(d.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: table, DeletionProtectionEnabled: aws.Bool(true)}))(t)
	d.advance(time.Second)
	_, err = d.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: table})
	wantError(t, err, "ValidationException", "protected against deletion")

	d.create("third", "p")
	_, err = d.CreateTable(ctx, &dynamodb.CreateTableInput{TableName: aws.String("fourth"), BillingMode: "PAY_PER_REQUEST", KeySchema: provisioned.KeySchema, AttributeDefinitions: provisioned.AttributeDefinitions})
	wantCode(t, err, "LimitExceededException")

	if got := must(d.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: table}))(t).TimeToLiveDescription.TimeToLiveStatus; got != "DISABLED" {
		t.Errorf("items expire: %s", got)
	}
	must(d.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String("other")}))(t)
	if status("other") != "DELETING" {
		t.Error("the table is not being deleted")
	}
	d.advance(time.Second)
	_, err = d.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("other")})
	wantError(t, err, "ResourceNotFoundException", "Requested resource not found: Table: other not found")
}

// TestDynamoDBFaults: other transactions, reads of what was, throttled tables.
func TestDynamoDBFaults(t *testing.T) {
	d := startTable(t, awsemu.Options{Throttle: true})
	d.put(at("a", "a"))
	d.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Conflict, Times: 1})
	_, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: at("b", "b")})
	wantError(t, err, "TransactionConflictException", "Transaction is ongoing for the item")
	d.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Conflict, Resource: "two"})
	two := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: table, Item: at("one", "a")}}, {Put: &types.Put{TableName: table, Item: at("two", "a")}}}}
	_, err = d.TransactWriteItems(ctx, two)
	wantError(t, err, "TransactionCanceledException", "[None, TransactionConflict]")
	must(d.TransactWriteItems(ctx, two))(t)

	d.srv.Faults().Add(awsemu.Fault{Kind: awsemu.StaleRead, Operation: "Query", Times: 2})
	d.put(with(at("a", "a"), "v", text("new")))
	if d.get(at("a", "a"))["v"] == nil {
		t.Error("a consistent read answered what was")
	}
	if old := d.read(at("a", "a"), false); old == nil || old["v"] != nil {
		t.Errorf("the read was not stale: %v", old)
	}
	d.srv.Faults().Clear()

	must(d.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("slow"), ProvisionedThroughput: &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("p"), KeyType: "HASH"}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("p"), AttributeType: "S"}},
	}))(t)
	d.advance(time.Second)
	large := &dynamodb.PutItemInput{TableName: aws.String("slow"), Item: item{"p": text("a"), "v": text(strings.Repeat("v", 300<<10))}}
	must(d.PutItem(ctx, large))(t) // five minutes of what was not used
	_, err = d.PutItem(ctx, large)
	wantCode(t, err, "ProvisionedThroughputExceededException")
	d.advance(2 * time.Second)
	must(d.PutItem(ctx, large))(t)
}

// TestDynamoDBSaved: items of all types survive a restart.
func TestDynamoDBSaved(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	whole := item{
		"p": text("p<&\u2028"), "s": text("s"), "n": number("-1.50e-3"), "b": &types.AttributeValueMemberB{Value: []byte{0, 255}}, "yes": &types.AttributeValueMemberBOOL{Value: false},
		"nil": &types.AttributeValueMemberNULL{Value: true}, "empty": text(""), "l": &types.AttributeValueMemberL{Value: []types.AttributeValue{number("1"), &types.AttributeValueMemberM{Value: item{}}}},
		"m": &types.AttributeValueMemberM{Value: item{"a": &types.AttributeValueMemberL{Value: []types.AttributeValue{}}}}, "ss": &types.AttributeValueMemberSS{Value: []string{"b", "a"}},
		"ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}}, "bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {}}},
	}
	d.put(whole)
	var saved bytes.Buffer
	if err := d.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	again := start(t, awsemu.Options{Clock: d.clock})
	if err := again.srv.Load(&saved); err != nil {
		t.Fatal(err)
	}
	after := &ddb{again, again.dynamodb()}
	key := item{"p": whole["p"], "s": whole["s"]}
	whole["n"] = number("-0.0015") // as DynamoDB writes it
	if got := after.get(key); !reflect.DeepEqual(got, whole) {
		t.Errorf("item = %#v", got)
	}
}
