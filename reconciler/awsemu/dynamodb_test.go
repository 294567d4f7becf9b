package awsemu_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func (e *env) dynamodb() *dynamodb.Client { return dynamodb.NewFromConfig(e.cfg) }

var table = aws.String("leases")

// ddb is DynamoDB with a table (hash key p, range key s), which is ready.
type ddb struct {
	*env
	*dynamodb.Client
}

func startTable(t testing.TB, o awsemu.Options) *ddb {
	t.Helper()
	e := start(t, o)
	d := &ddb{e, e.dynamodb()}
	d.create(*table, "p", "s")
	return d
}

// create makes a table on demand; its keys are texts.
func (d *ddb) create(name string, keys ...string) {
	d.t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for i, key := range keys {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &key, KeyType: []types.KeyType{"HASH", "RANGE"}[i]})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &key, AttributeType: "S"})
	}
	must(d.CreateTable(ctx, in))(d.t)
	d.advance(time.Second)
}

type item = map[string]types.AttributeValue

func text(v string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: v} }
func number(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

func at(p, s string) item { return item{"p": text(p), "s": text(s)} }

// with is an item with more.
func with(i item, name string, v types.AttributeValue) item {
	out := item{name: v}
	for k, v := range i {
		out[k] = v
	}
	return out
}

func (d *ddb) put(i item) {
	d.t.Helper()
	must(d.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: i}))(d.t)
}

func (d *ddb) get(key item) item {
	d.t.Helper()
	return d.read(key, true)
}

func (d *ddb) read(key item, consistent bool) item {
	d.t.Helper()
	found := must(d.Query(ctx, &dynamodb.QueryInput{
		TableName: table, KeyConditionExpression: aws.String("p = :p AND s = :s"), ExpressionAttributeValues: item{":p": key["p"], ":s": key["s"]}, ConsistentRead: &consistent,
	}))(d.t).Items
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// TestDynamoDBConditions: a lease as several takers would have it: the first takes it,
// the second sees whose it is, the first renews.
func TestDynamoDBConditions(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	take := &dynamodb.PutItemInput{
		TableName: table, Item: with(with(at("lease", "a"), "holder", text("one")), "epoch", number("1")),
		ConditionExpression: aws.String("attribute_not_exists(p)"), ReturnValuesOnConditionCheckFailure: "ALL_OLD",
	}
	must(d.PutItem(ctx, take))(t)
	_, err := d.PutItem(ctx, take)
	wantError(t, err, "ConditionalCheckFailedException", "The conditional request failed")
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) || failed.Item["holder"].(*types.AttributeValueMemberS).Value != "one" {
		t.Errorf("the failure does not tell the item: %v", err)
	}
	renew := &dynamodb.UpdateItemInput{
		TableName: table, Key: at("lease", "a"), ReturnValues: types.ReturnValueUpdatedNew,
		UpdateExpression: aws.String("SET #n = if_not_exists(#n, :zero) + :one, epoch = :e"), ConditionExpression: aws.String("epoch = :e AND holder = :m"),
		ExpressionAttributeNames:  map[string]string{"#n": "counter"},
		ExpressionAttributeValues: item{":zero": number("0"), ":one": number("1"), ":e": number("1.0"), ":m": text("one")},
	}
	for n := 1; n < 4; n++ {
		got := must(d.UpdateItem(ctx, renew))(t).Attributes
		if v := got["counter"].(*types.AttributeValueMemberN).Value; v != fmt.Sprint(n) || len(got) != 2 {
			t.Errorf("renewal %d answers %v", n, got)
		}
	}
	renew.ExpressionAttributeValues[":e"] = number("2")
	_, err = d.UpdateItem(ctx, renew)
	wantCode(t, err, "ConditionalCheckFailedException")
	if n := d.get(at("lease", "a"))["counter"].(*types.AttributeValueMemberN).Value; n != "3" {
		t.Errorf("a refused renewal changed the item: %s", n)
	}
	remove := &dynamodb.DeleteItemInput{
		TableName: table, Key: at("lease", "a"), ReturnValues: types.ReturnValueAllOld, ConditionExpression: aws.String("epoch < :e"),
		ExpressionAttributeValues: item{":e": number("1")}, ReturnValuesOnConditionCheckFailure: "ALL_OLD",
	}
	_, err = d.DeleteItem(ctx, remove)
	if wantCode(t, err, "ConditionalCheckFailedException"); !errors.As(err, &failed) || len(failed.Item) != 5 {
		t.Errorf("the failure does not tell the item: %v", err)
	}
	remove.ExpressionAttributeValues[":e"] = number("2")
	if old := must(d.DeleteItem(ctx, remove))(t).Attributes; len(old) != 5 || d.get(at("lease", "a")) != nil {
		t.Errorf("deleted %v", old)
	}
}

// TestDynamoDBTransactions: all parts of a transaction or none, the reasons of each, and
// a token that was used.
func TestDynamoDBTransactions(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	d.put(with(at("owner", "a"), "epoch", number("7")))
	fenced := func(epoch, value, token string) error {
		_, err := d.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token, TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: table, Item: with(at("record", "a"), "v", text(value))}},
			{ConditionCheck: &types.ConditionCheck{
				TableName: table, Key: at("owner", "a"), ConditionExpression: aws.String("epoch = :e"),
				ExpressionAttributeValues: item{":e": number(epoch)}, ReturnValuesOnConditionCheckFailure: "ALL_OLD",
			}},
			{Delete: &types.Delete{TableName: table, Key: at("record", "old")}},
			{Update: &types.Update{TableName: table, Key: at("record", "count"), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": number("1")}}},
		}})
		return err
	}
	count := func() string {
		if n, ok := d.get(at("record", "count"))["n"].(*types.AttributeValueMemberN); ok {
			return n.Value
		}
		return ""
	}
	err := fenced("6", "stale", "one")
	wantError(t, err, "TransactionCanceledException", "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, None, None]")
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 4 {
		t.Fatalf("no reasons: %v", err)
	}
	if why := cancelled.CancellationReasons[1]; *why.Code != "ConditionalCheckFailed" || *why.Message != "The conditional request failed" || why.Item["epoch"].(*types.AttributeValueMemberN).Value != "7" {
		t.Errorf("reason = %+v", why)
	}
	if d.get(at("record", "a")) != nil || count() != "" {
		t.Error("a part of a cancelled transaction was stored")
	}
	// A token of a transaction that failed is as new.
	for range 2 {
		if err := fenced("7", "new", "one"); err != nil {
			t.Fatal(err)
		}
	}
	if count() != "1" {
		t.Errorf("a token that was used ran the transaction again: %s", count())
	}
	wantCode(t, fenced("7", "other", "one"), "IdempotentParameterMismatchException")
	d.advance(10 * time.Minute)
	if err := fenced("7", "new", "one"); err != nil || count() != "2" {
		t.Errorf("after ten minutes a token is not new: %v, %s", err, count())
	}
	got := must(d.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: table, Key: at("record", "a"), ProjectionExpression: aws.String("v")}},
		{Get: &types.Get{TableName: table, Key: at("record", "none")}},
	}, ReturnConsumedCapacity: "TOTAL"}))(t)
	if v := got.Responses[0].Item["v"].(*types.AttributeValueMemberS).Value; v != "new" || len(got.Responses[0].Item) != 1 || got.Responses[1].Item != nil || *got.ConsumedCapacity[0].CapacityUnits != 4 {
		t.Errorf("read together: %+v, %+v", got.Responses, got.ConsumedCapacity)
	}
}

// TestDynamoDBTransactionsRefuse what is no transaction, before anything changed.
func TestDynamoDBTransactionsRefuse(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	put := func(i item) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: table, Item: i}}
	}
	large := func(n int) (out []types.TransactWriteItem) {
		for i := range n {
			out = append(out, put(with(at("large", fmt.Sprint(i)), "v", text(strings.Repeat("v", 390<<10)))))
		}
		return out
	}
	many := func(n int) (out []types.TransactWriteItem) {
		for i := range n {
			out = append(out, put(at("many", fmt.Sprint(i))))
		}
		return out
	}
	for name, c := range map[string]struct {
		items         []types.TransactWriteItem
		code, message string
	}{
		"one item twice":   {[]types.TransactWriteItem{put(at("a", "a")), put(at("a", "a"))}, "ValidationException", "Transaction request cannot include multiple operations on one item"},
		"nothing":          {[]types.TransactWriteItem{{}}, "ValidationException", "TransactItems can only contain one of Check, Put, Update or Delete"},
		"too many":         {many(101), "ValidationException", "Member must have length less than or equal to 100"},
		"too large":        {large(11), "ValidationException", "Transaction payload size cannot exceed"},
		"another table":    {[]types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("none"), Item: at("a", "a")}}}, "ResourceNotFoundException", "Requested resource not found"},
		"without a key":    {[]types.TransactWriteItem{put(at("a", "a")), put(item{"p": text("a")})}, "TransactionCanceledException", "[None, ValidationError]"},
		"a bad update":     {[]types.TransactWriteItem{{Update: &types.Update{TableName: table, Key: at("a", "a"), UpdateExpression: aws.String("SET a = b")}}}, "TransactionCanceledException", "[ValidationError]"},
		"a bad expression": {[]types.TransactWriteItem{{Update: &types.Update{TableName: table, Key: at("a", "a"), UpdateExpression: aws.String("SET")}}}, "ValidationException", "Syntax error"},
	} {
		_, err := d.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: c.items})
		t.Run(name, func(t *testing.T) { wantError(t, err, c.code, c.message) })
	}
	if n := must(d.Scan(ctx, &dynamodb.ScanInput{TableName: table}))(t).Count; n != 0 {
		t.Errorf("refused transactions left %d items", n)
	}
	must(d.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: many(100)}))(t)
}

// TestDynamoDBPages: a query has its items in order, forwards and backwards, in pages; a
// scan has each item once, in segments too.
func TestDynamoDBPages(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	for p := range 5 {
		for s := range 6 {
			d.put(with(at(fmt.Sprint("p", p), fmt.Sprintf("s%d", s)), "n", number(fmt.Sprint(s))))
		}
	}
	query := func(more func(*dynamodb.QueryInput)) (out string, pages int) {
		in := &dynamodb.QueryInput{TableName: table, KeyConditionExpression: aws.String("p = :p"), ExpressionAttributeValues: item{":p": text("p1")}, Limit: aws.Int32(2)}
		more(in)
		all := dynamodb.NewQueryPaginator(d, in)
		for all.HasMorePages() {
			for _, i := range must(all.NextPage(ctx))(t).Items {
				out += i["n"].(*types.AttributeValueMemberN).Value
			}
			pages++
		}
		return out, pages
	}
	between := func(in *dynamodb.QueryInput) {
		in.KeyConditionExpression, in.ExpressionAttributeValues = aws.String("s BETWEEN :a AND :b AND p = :p"), item{":p": text("p1"), ":a": text("s1"), ":b": text("s3")}
	}
	for _, c := range []struct {
		want  string
		pages int
		more  func(*dynamodb.QueryInput)
	}{
		// Pages that end with the last item tell of another, which is empty.
		{"012345", 4, func(*dynamodb.QueryInput) {}},
		{"543210", 4, func(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }},
		{"123", 2, between},
		{"24", 4, func(in *dynamodb.QueryInput) {
			in.FilterExpression, in.ExpressionAttributeValues = aws.String("n IN (:a, :b)"), item{":p": text("p1"), ":a": number("2"), ":b": number("4")}
		}},
		{"45", 2, func(in *dynamodb.QueryInput) {
			in.KeyConditionExpression, in.ExpressionAttributeValues = aws.String("p = :p AND s > :a"), item{":p": text("p1"), ":a": text("s3")}
		}},
	} {
		if got, pages := query(c.more); got != c.want || pages != c.pages {
			t.Errorf("query = %s in %d pages, want %s in %d", got, pages, c.want, c.pages)
		}
	}
	seen := map[string]int{}
	for segment := range int32(3) {
		all := dynamodb.NewScanPaginator(d, &dynamodb.ScanInput{TableName: table, Limit: aws.Int32(4), Segment: aws.Int32(segment), TotalSegments: aws.Int32(3)})
		for all.HasMorePages() {
			for _, i := range must(all.NextPage(ctx))(t).Items {
				seen[i["p"].(*types.AttributeValueMemberS).Value+i["s"].(*types.AttributeValueMemberS).Value]++
			}
		}
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s was scanned %d times", key, n)
		}
	}
	if len(seen) != 30 {
		t.Errorf("scanned %d items", len(seen))
	}
	// A page ends after 1 MB, whatever is filtered.
	for s := range 4 {
		d.put(with(at("large", fmt.Sprint(s)), "v", text(strings.Repeat("v", 390<<10))))
	}
	large := must(d.Query(ctx, &dynamodb.QueryInput{
		TableName: table, KeyConditionExpression: aws.String("p = :p"), FilterExpression: aws.String("attribute_not_exists(v)"), ExpressionAttributeValues: item{":p": text("large")},
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: "TOTAL",
	}))(t)
	if large.Count != 0 || large.ScannedCount != 3 || large.LastEvaluatedKey == nil || *large.ConsumedCapacity.CapacityUnits < 280 {
		t.Errorf("large page = %d of %d, rest %v, %v units", large.Count, large.ScannedCount, large.LastEvaluatedKey, *large.ConsumedCapacity.CapacityUnits)
	}
}
