package awsemu_test

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// whole is the item that expressions run on, in DynamoDB's JSON.
const whole = `{"p": {"S": "p"}, "s": {"S": "s"}, "n": {"N": "5"}, "t": {"S": "hello"}, "b": {"B": "AAEC"}, "yes": {"BOOL": true}, "nothing": {"NULL": true},
 "l": {"L": [{"N": "1"}, {"S": "x"}, {"M": {"k": {"S": "v"}}}]}, "m": {"M": {"a": {"N": "1"}, "deep": {"M": {"x": {"L": [{"N": "7"}]}}}}},
 "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2"]}, "bs": {"BS": ["AA=="]}, "name": {"S": "reserved"}, "big": {"N": "9007199254740993"}}`

// values are what expressions may name; names are #name of the words that begin with #.
var values = map[string]string{
	":n": `{"N": "5"}`, ":n5": `{"N": "5.00"}`, ":one": `{"N": "1"}`, ":nine": `{"N": "9"}`, ":half": `{"N": "0.5"}`, ":big": `{"N": "9007199254740992"}`, ":huge": `{"N": "9e125"}`,
	":t": `{"S": "hello"}`, ":he": `{"S": "he"}`, ":z": `{"S": "z"}`, ":a": `{"S": "a"}`, ":b": `{"B": "AAE="}`, ":yes": `{"BOOL": true}`, ":null": `{"NULL": true}`,
	":ss": `{"SS": ["b", "a"]}`, ":sc": `{"SS": ["b", "c"]}`, ":ns": `{"NS": ["2", "3"]}`, ":l": `{"L": [{"S": "y"}]}`, ":m": `{"M": {"a": {"N": "1"}}}`,
	":S": `{"S": "S"}`, ":N": `{"S": "N"}`, ":Q": `{"S": "Q"}`,
}

var placeholder = regexp.MustCompile(`[:#][A-Za-z0-9]+`)

// client makes calls to a DynamoDB in its own JSON.
type client struct {
	t   testing.TB
	url string
}

// call returns the answer, and its code and message if it is an error.
func (c client) call(op, body string) (map[string]any, string, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var out map[string]any
	if len(raw) == 0 && resp.StatusCode == http.StatusOK {
		return nil, "", ""
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, "no JSON", string(raw)
	}
	kind, _ := out["__type"].(string)
	message, ok := out["message"].(string)
	if !ok {
		message, _ = out["Message"].(string)
	}
	return out, kind[strings.LastIndex(kind, "#")+1:], message
}

// with is a request with an expression and what it names.
func request(body, kind, text string) string {
	in := map[string]any{}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		panic(err)
	}
	in["TableName"], in[kind] = "leases", text
	names, used := map[string]string{}, map[string]json.RawMessage{}
	for _, key := range placeholder.FindAllString(text, -1) {
		if v, ok := values[key]; ok {
			used[key] = json.RawMessage(v)
		} else if key[0] == '#' && key != "#none" {
			names[key] = key[1:]
		}
	}
	if len(names) > 0 {
		in["ExpressionAttributeNames"] = names
	}
	if len(used) > 0 {
		in["ExpressionAttributeValues"] = used
	}
	out, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// conditions are true or false of the item, or refused.
var conditions = []struct{ text, want string }{
	{"n = :n5", "true"}, {"n <> :n", "false"}, {"n < :nine AND n > :one", "true"}, {"n >= :n and n <= :n", "true"}, {"t < :z", "true"}, {"b > :b", "true"},
	{"big > :big", "true"}, {"big = :big", "false"}, // not as floats
	{"absent = :n", "false"}, {"absent <> :n", "true"}, {"absent < :n", "false"}, {"NOT absent = :n", "true"}, {"t < :n", "false"}, {"n = :t", "false"},
	{"ss = :ss", "true"}, {"m.a = :one", "true"}, {"l[0] = :one", "true"}, {"l[2].k = :t", "false"}, {"m.deep.x[0] > :n", "true"}, {"l[9] = :one", "false"}, {"m = :m", "false"},
	{"n BETWEEN :one AND :nine", "true"}, {"n BETWEEN :nine AND :one", "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: {N:9}, upper bound operand: AttributeValue: {N:1}"},
	{"n BETWEEN :one AND :t", "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:hello}"},
	{"n IN (:one, :n5, :t)", "true"}, {"t IN (:a)", "false"}, {":n IN (n, m.a)", "true"},
	{"attribute_exists(n) AND attribute_not_exists(absent)", "true"}, {"attribute_exists(m.b) OR attribute_exists(l[3])", "false"}, {"attribute_exists(nothing)", "true"},
	{"attribute_type(n, :N)", "true"}, {"attribute_type(n, :S)", "false"}, {"attribute_type(n, :Q)", "Invalid attribute type name found; type: Q, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"},
	{"begins_with(t, :he)", "true"}, {"begins_with(b, :b)", "true"}, {"begins_with(n, :he)", "false"}, {"begins_with(t, :n)", "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"},
	{"contains(t, :he)", "true"}, {"contains(ss, :a)", "true"}, {"contains(ns, :one)", "true"}, {"contains(l, :one)", "true"}, {"contains(ss, :one)", "false"}, {"contains(absent, :a)", "false"},
	{"size(t) = :n", "true"}, {"size(l) > :one", "true"}, {"size(m) = size(ss)", "true"}, {"size(n) > :one", "false"}, {"size(absent) = :n", "false"},
	{"size(size(t)) = :n", "Incorrect operand type for operator or function; operator or function: size, operand type: N"},
	{"attribute_exists(l[99999999999])", "List index is not within the allowable range; index: [99999999999]"},
	{"attribute_exists(m" + strings.Repeat(".a", 31) + ")", "false"}, {"attribute_exists(m" + strings.Repeat(".a", 32) + ")", "The document path has too many nesting levels; nesting levels: 33"},
	{"size(t)", "The function is not allowed to be used this way in an expression; function: size"},
	{"attribute_exists(n) = :yes", "The function is not allowed to be used this way in an expression; function: attribute_exists"},
	{"NOT (n = :one OR t = :t) OR yes = :yes", "true"}, {"n = :one OR t = :t AND yes = :yes", "true"}, {"(n = :one OR t = :t) AND n = :one", "false"}, {"NOT n = :one AND t = :t", "true"},
	{"((n = :n))", "The expression has redundant parentheses;"}, {"(n = :n)", "true"},
	{"#name = :t", "false"}, {"name = :t", "Attribute name is a reserved keyword; reserved keyword: name"}, {"m.Name = :t", "Attribute name is a reserved keyword; reserved keyword: Name"},
	{"#none = :t", "An expression attribute name used in the document path is not defined; attribute name: #none"},
	{"n = :none", "An expression attribute value used in expression is not defined; attribute value: :none"},
	{"", "The expression can not be empty;"}, {"n = ", `Syntax error; token: "<EOF>", near: "="`}, {"n == :n", `Syntax error; token: "=", near: "== :n"`},
	{"n = :n AND", `Syntax error; token: "<EOF>", near: "AND"`}, {"n", `Syntax error; token: "<EOF>", near: "n"`}, {"n = :n t", `Syntax error; token: "t", near: ":n t"`}, {"_n = :n", `Syntax error; token: "_", near: "_n"`},
	{"l[a] = :n", `Syntax error; token: "a", near: "[a]"`}, {"exists(n)", "Invalid function name; function: exists"}, {"if_not_exists(n, :n) = :n", "The function is not allowed in a condition expression; function: if_not_exists"},
	{"attribute_exists(:n)", "Operator or function requires a document path; operator or function: attribute_exists"},
	{"attribute_exists(n, t)", "Incorrect number of operands for operator or function; operator or function: attribute_exists, number of operands: 2"},
	{"n = n", "The first operand must be distinct from the remaining operands for this operator or function; operator: =, first operand: [n]"},
	{"n < :yes", "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"},
	{strings.Repeat("n = :n OR ", 600) + "n = :n", "Expression size has exceeded the maximum allowed size; expression size: 6006"},
}

// updates change the item, to attributes (null: none) or are refused.
var updates = []struct{ text, want string }{
	{"SET n = :one, absent = t, t = n", `{"n": {"N": "1"}, "absent": {"S": "hello"}, "t": {"N": "5"}}`}, // of the item as it was
	{"SET n = n + :half", `{"n": {"N": "5.5"}}`}, {"SET n = :one - n", `{"n": {"N": "-4"}}`}, {"SET big = big + :one", `{"big": {"N": "9007199254740994"}}`},
	{"SET n = if_not_exists(absent, :nine) + :one", `{"n": {"N": "10"}}`}, {"SET n = if_not_exists(n, :nine)", `{"n": {"N": "5"}}`},
	{"SET l = list_append(l, :l)", `{"l": {"L": [{"N": "1"}, {"S": "x"}, {"M": {"k": {"S": "v"}}}, {"S": "y"}]}}`},
	{"SET l = list_append(if_not_exists(absent, :l), :l)", `{"l": {"L": [{"S": "y"}, {"S": "y"}]}}`},
	{"SET l[9] = :one, l[5] = :t, l[1] = :n", `{"l": {"L": [{"N": "1"}, {"N": "5"}, {"M": {"k": {"S": "v"}}}, {"S": "hello"}, {"N": "1"}]}}`},
	{"REMOVE l[0], l[1], t, absent, l[7]", `{"l": {"L": [{"M": {"k": {"S": "v"}}}]}, "t": null}`},
	{"SET m.deep.y = :one REMOVE m.deep.x[0], m.a", `{"m": {"M": {"deep": {"M": {"x": {"L": []}, "y": {"N": "1"}}}}}}`},
	{"ADD n :one, absent :nine, ss :sc, ns :ns", `{"n": {"N": "6"}, "absent": {"N": "9"}, "ss": {"SS": ["a", "b", "c"]}, "ns": {"NS": ["1", "2", "3"]}}`},
	{"DELETE ss :sc, absent :ss", `{"ss": {"SS": ["a"]}, "absent": null}`}, {"DELETE ss :ss", `{"ss": null}`}, {"set #name = :t remove n", `{"name": {"S": "hello"}, "n": null}`},
	{"SET n = absent", "The provided expression refers to an attribute that does not exist in the item"},
	{"SET absent.a = :one", "The document path provided in the update expression is invalid for update"}, {"SET n.a = :one", "The document path provided in the update expression is invalid for update"},
	{"REMOVE absent.a", "The document path provided in the update expression is invalid for update"}, {"SET n[0] = :one", "The document path provided in the update expression is invalid for update"},
	{"SET n = t + :one", "An operand in the update expression has an incorrect data type"}, {"ADD t :one", "An operand in the update expression has an incorrect data type"}, {"DELETE ns :ss", "An operand in the update expression has an incorrect data type"},
	{"SET n = :t + :one", "Incorrect operand type for operator or function; operator or function: +, operand type: S"},
	{"ADD n :t", "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"},
	{"DELETE n :one", "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND"},
	{"SET l = list_append(l, :t)", "Incorrect operand type for operator or function; operator or function: list_append, operand type: S"},
	{"SET n = :one, n = :nine", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [n], path two: [n]"},
	{"SET m.a = :one REMOVE m", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, a], path two: [m]"},
	{"SET m.a = :one, m[0] = :one", "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [m, a], path two: [m, [0]]"},
	{"SET n = :one SET t = :t", `The "SET" section can only be used once in an update expression;`}, {"SET n", `Syntax error; token: "<EOF>", near: "n"`}, {"n = :one", `Syntax error; token: "n", near: "n ="`},
	{"SET n = size(t)", "The function is not allowed in an update expression; function: size"}, {"SET n = (:one)", `Syntax error; token: "(", near: "= (:one"`},
	{"SET p = :t", "Cannot update attribute p. This attribute is part of the key"}, {"SET n = :huge + :huge", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
	{"SET n = :huge + :one", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
	{"SET l = list_append(list_append(l, :l), :l)", "The function is not allowed to be used this way in an expression; function: list_append"},
}

// run compares what expressions do with what they should, and tells of differences.
func (c client) run(differ func(text, want, got string)) {
	put := `{"Item": ` + whole + `}`
	c.call("PutItem", `{"TableName": "leases", "Item": `+whole+`}`)
	for _, e := range conditions {
		_, code, message := c.call("PutItem", request(put, "ConditionExpression", e.text))
		got := map[string]string{"": "true", "ConditionalCheckFailedException": "false"}[code]
		if got == "" {
			got = strings.TrimPrefix(message, "Invalid ConditionExpression: ")
		}
		if got != e.want {
			differ(e.text, e.want, got)
		}
	}
	for _, e := range updates {
		c.call("PutItem", `{"TableName": "leases", "Item": `+whole+`}`)
		out, _, message := c.call("UpdateItem", request(`{"Key": {"p": {"S": "p"}, "s": {"S": "s"}}, "ReturnValues": "ALL_NEW"}`, "UpdateExpression", e.text))
		var want, item map[string]any
		if json.Unmarshal([]byte(e.want), &want) != nil {
			if got := strings.TrimPrefix(strings.TrimPrefix(message, "Invalid UpdateExpression: "), "One or more parameter values were invalid: "); got != e.want {
				differ(e.text, e.want, got)
			}
			continue
		}
		item, _ = out["Attributes"].(map[string]any)
		out = nil
		if err := json.Unmarshal([]byte(whole), &out); err != nil {
			c.t.Fatal(err)
		}
		for name, v := range want {
			if out[name] = v; v == nil {
				delete(out, name)
			}
		}
		if !reflect.DeepEqual(item, out) {
			got, _ := json.Marshal(item)
			differ(e.text, e.want, message+string(got))
		}
	}
}

// TestDynamoDBExpressions holds conditions and updates against what AWS documents.
func TestDynamoDBExpressions(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	client{t, *d.cfg.BaseEndpoint}.run(func(text, want, got string) { t.Errorf("%.80s\n is   %s\n want %s", text, got, want) })
}

// TestDynamoDBRefuses holds codes and messages of what is no expression's fault.
func TestDynamoDBRefuses(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	c := client{t, *d.cfg.BaseEndpoint}
	const invalid = "One or more parameter values were invalid: "
	for _, r := range []struct{ op, body, code, message string }{
		{"PutItem", `{}`, "ValidationException", "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null; Value null at 'item' failed to satisfy constraint: Member must not be null"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": 5}}}`, "SerializationException", ""},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "a"}}}`, "ValidationException", invalid + "Missing the key s in the item"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "a"}, "s": {"N": "1"}}}`, "ValidationException", invalid + "Type mismatch for key s expected: S actual: N"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": ""}, "s": {"S": "1"}}}`, "ValidationException", "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: p"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "` + strings.Repeat("p", 2049) + `"}, "s": {"S": "1"}}}`, "ValidationException", invalid + "Size of hashkey has exceeded the maximum size limit of2048 bytes"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "` + strings.Repeat("s", 1025) + `"}}}`, "ValidationException", invalid + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": {"S": "` + strings.Repeat("v", 400<<10) + `"}}}`, "ValidationException", "Item size has exceeded the maximum allowed size"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p", "N": "1"}, "s": {"S": "s"}}}`, "ValidationException", "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {}, "s": {"S": "s"}}}`, "ValidationException", "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": {"SS": []}}}`, "ValidationException", invalid + "An string set  may not be empty"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": {"NS": ["1", "1.0"]}}}`, "ValidationException", invalid + "Input collection [1, 1] contains duplicates."},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": {"N": "one"}}}`, "ValidationException", "The parameter cannot be converted to a numeric value: one"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": {"N": "` + strings.Repeat("1", 39) + `"}}}`, "ValidationException", "Attempting to store more than 38 significant digits in a Number"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": {"N": "1e126"}}}`, "ValidationException", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": {"N": "1e-131"}}}`, "ValidationException", "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
		{"PutItem", `{"TableName": "leases", "Item": {"p": {"S": "p"}, "s": {"S": "s"}, "v": ` + strings.Repeat(`{"L": [`, 33) + strings.Repeat(`]}`, 33) + `}}`, "ValidationException", "Nesting Levels have exceeded supported limits: Attributes of type List and Map can be nested up to 32 levels"},
		{"PutItem", `{"TableName": "leases", "Item": ` + whole + `, "ReturnValues": "ALL_NEW"}`, "ValidationException", "Return values set to invalid value"},
		{"PutItem", `{"TableName": "leases", "Item": ` + whole + `, "ExpressionAttributeValues": {":a": {"S": "a"}}}`, "ValidationException", "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null"},
		{"PutItem", `{"TableName": "leases", "Item": ` + whole + `, "ConditionExpression": "n = :a", "ExpressionAttributeValues": {":a": {"S": "a"}, ":b": {"S": "b"}}}`, "ValidationException", "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}"},
		{"PutItem", `{"TableName": "leases", "Item": ` + whole + `, "ConditionExpression": "attribute_exists(n)", "ExpressionAttributeNames": {"#a": "a"}}`, "ValidationException", "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}"},
		{"PutItem", `{"TableName": "leases", "Item": ` + whole + `, "ConditionExpression": "n = :a", "ExpressionAttributeValues": {}}`, "ValidationException", "ExpressionAttributeValues must not be empty"},
		{"PutItem", `{"TableName": "leases", "Item": ` + whole + `, "ConditionExpression": "n = :a", "ExpressionAttributeValues": {"a": {"S": "a"}}}`, "ValidationException", `ExpressionAttributeValues contains invalid key: Syntax error; key: "a"`},
		{"PutItem", `{"TableName": "leases", "Item": ` + whole + `, "Expected": {}}`, "ValidationException", "Unknown parameter: Expected"},
		{"UpdateItem", `{"TableName": "leases", "Key": {"p": {"S": "p"}}, "UpdateExpression": "REMOVE n"}`, "ValidationException", "The provided key element does not match the schema"},
		{"DeleteItem", `{"TableName": "leases", "Key": {"p": {"S": "p"}, "s": {"S": "s"}, "n": {"N": "1"}}}`, "ValidationException", "The provided key element does not match the schema"},
		{"DeleteItem", `{"TableName": "none", "Key": {"p": {"S": "p"}}}`, "ResourceNotFoundException", "Requested resource not found"},
		{"Query", `{"TableName": "leases"}`, "ValidationException", "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		{"Query", request(`{}`, "KeyConditionExpression", "s = :t"), "ValidationException", "Query condition missed key schema element: p"},
		{"Query", request(`{}`, "KeyConditionExpression", "p > :t"), "ValidationException", "Query key condition not supported"},
		{"Query", request(`{}`, "KeyConditionExpression", "p = :n"), "ValidationException", invalid + "Condition parameter type does not match schema type"},
		{"Query", request(`{}`, "KeyConditionExpression", "p = :t OR s = :t"), "ValidationException", "Invalid operator used in KeyConditionExpression: OR"},
		{"Query", request(`{}`, "KeyConditionExpression", "p = :t AND n = :n"), "ValidationException", "Query condition missed key schema element: s"},
		{"Query", request(`{}`, "KeyConditionExpression", "p = :t AND p = :z"), "ValidationException", "KeyConditionExpressions must only contain one condition per key"},
		{"Query", request(`{"FilterExpression": "attribute_exists(s)"}`, "KeyConditionExpression", "p = :t"), "ValidationException", "Filter Expression can only contain non-primary key attributes: Primary key attribute: s"},
		{"Scan", `{"TableName": "leases", "ProjectionExpression": "m.a, m"}`, "ValidationException", "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [m, a], path two: [m]"},
		{"Scan", `{"TableName": "leases", "IndexName": "index"}`, "ValidationException", "The table does not have the specified index: index"},
		{"Scan", `{"TableName": "leases", "Segment": 1}`, "ValidationException", "The TotalSegments parameter is required but was not present in the request when Segment parameter is present"},
		{"PutItem", `{"TableName": "no!table", "Item": {}}`, "ValidationException", "1 validation error detected: Value 'no!table' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"},
		{"PutItem", `null`, "SerializationException", ""},
		{"Query", request(`{}`, "KeyConditionExpression", "p.a = :t"), "ValidationException", "KeyConditionExpressions cannot have conditions on nested attributes"},
		{"Scan", `{"TableName": "leases", "Segment": 0, "TotalSegments": 1000000, "ExclusiveStartKey": {"p": {"S": "p"}, "s": {"S": "s"}}}`, "ValidationException", "The provided Exclusive start key is not within the provided Segment"},
		{"CreateTable", `{"TableName": "ab"}`, "ValidationException", "TableName must be at least 3 characters long and at most 255 characters long"},
		{"CreateTable", `{"TableName": "abc", "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}]}`, "ValidationException", invalid + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"},
		{"CreateTable", `{"TableName": "abc", "KeySchema": [{"AttributeName": "p", "KeyType": "RANGE"}], "AttributeDefinitions": []}`, "ValidationException", "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"},
		{"CreateTable", `{"TableName": "abc", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}, {"AttributeName": "q", "AttributeType": "S"}]}`, "ValidationException", invalid + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions"},
		{"CreateBackup", `{}`, "UnknownOperationException", ""},
	} {
		if _, code, message := c.call(r.op, r.body); code != r.code || r.message != "" && message != r.message {
			t.Errorf("%s %.200s\n is   %s: %s\n want %s: %s", r.op, r.body, code, message, r.code, r.message)
		}
	}
	if out, _, _ := c.call("Scan", `{"TableName": "leases"}`); out["Count"] != 0.0 {
		t.Errorf("what was refused left %v items", out["Count"])
	}
}

// TestDynamoDBAnswersCarryTheirChecksum, errors too, in DynamoDB's own form.
func TestDynamoDBAnswersCarryTheirChecksum(t *testing.T) {
	d := startTable(t, awsemu.Options{})
	var body bytes.Buffer
	body.WriteString(`{"TableName": "none"}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, *d.cfg.BaseEndpoint, &body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810.DescribeTable")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	const want = `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found: Table: none not found"}`
	if err != nil || resp.StatusCode != 400 || resp.Header.Get("X-Amz-Crc32") != "2960256995" || resp.Header.Get("Content-Type") != "application/x-amz-json-1.0" || string(raw) != want {
		t.Errorf("status %d, headers %v, body %s", resp.StatusCode, resp.Header, raw)
	}
}

// TestDynamoDBMutilatedRequests: a request of which any part is another is answered or
// refused, and never the emulator's own failure.
func TestDynamoDBMutilatedRequests(t *testing.T) {
	const key = `{"p": {"S": "p"}, "s": {"S": "s"}}`
	d := startTable(t, awsemu.Options{})
	c := client{t, *d.cfg.BaseEndpoint}
	for op, body := range map[string]string{
		"PutItem":            `{"TableName": "leases", "Item": ` + whole + `, "ConditionExpression": "#n = :n", "ExpressionAttributeNames": {"#n": "n"}, "ExpressionAttributeValues": {":n": {"N": "5"}}, "ReturnConsumedCapacity": "TOTAL"}`,
		"UpdateItem":         `{"TableName": "leases", "Key": ` + key + `, "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "5"}}, "ReturnValues": "UPDATED_NEW"}`,
		"Query":              `{"TableName": "leases", "KeyConditionExpression": "p = :n", "ExpressionAttributeValues": {":n": {"S": "p"}}, "Limit": 1, "ExclusiveStartKey": ` + key + `, "ScanIndexForward": false}`,
		"Scan":               `{"TableName": "leases", "Segment": 0, "TotalSegments": 1, "ExclusiveStartKey": ` + key + `, "Select": "COUNT"}`,
		"TransactGetItems":   `{"TransactItems": [{"Get": {"TableName": "leases", "Key": ` + key + `}}]}`,
		"TransactWriteItems": `{"TransactItems": [{"Put": {"TableName": "leases", "Item": ` + key + `}}, {"ConditionCheck": {"TableName": "leases", "Key": {"p": {"S": "p"}, "s": {"S": "t"}}, "ConditionExpression": "attribute_not_exists(p)"}}], "ClientRequestToken": "t"}`,
		"CreateTable":        `{"TableName": "more", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}], "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}], "Tags": [{"Key": "a", "Value": "b"}]}`,
		"UpdateTable":        `{"TableName": "none", "ReplicaUpdates": [{"Create": {"RegionName": "eu-central-1"}}], "BillingMode": "PROVISIONED", "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}}`,
		"DescribeTable":      `{"TableName": "arn:aws:dynamodb:eu-west-1:000000000000:table/leases"}`,
	} {
		if _, code, message := c.call(op, body); code != "" && op != "UpdateTable" && message != "The conditional request failed" {
			t.Errorf("%s is refused: %s: %s", op, code, message)
		}
		var request any
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Fatal(err)
		}
		for _, instead := range []any{nil, "", "x", -1.0, true, []any{}, []any{nil}, map[string]any{}, map[string]any{"S": nil}, map[string]any{"": map[string]any{}}, []any{map[string]any{}}} {
			for mutilated := range mutilations(request, instead) {
				raw, err := json.Marshal(mutilated)
				if err != nil {
					t.Fatal(err)
				}
				if _, code, message := c.call(op, string(raw)); code == "InternalServerError" || code == "no JSON" && message != "" {
					t.Errorf("%s %s: %s: %s", op, raw, code, message)
				}
			}
		}
	}
}

// mutilations are a value with each of its parts replaced.
func mutilations(v, instead any) iter.Seq[any] {
	return func(yield func(any) bool) {
		if !yield(instead) {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for name, part := range v {
				for other := range mutilations(part, instead) {
					out := maps.Clone(v)
					if out[name] = other; !yield(out) {
						return
					}
				}
			}
		case []any:
			for i, part := range v {
				for other := range mutilations(part, instead) {
					out := slices.Clone(v)
					if out[i] = other; !yield(out) {
						return
					}
				}
			}
		}
	}
}
