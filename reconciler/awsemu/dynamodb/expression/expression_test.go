package expression

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// FuzzExpressions: whatever is sent is read or refused in DynamoDB's form, and what was
// read runs on an item, which stays as it is.
func FuzzExpressions(f *testing.F) {
	for _, text := range []string{
		"a = :s AND (b > :n OR NOT attribute_exists(#n.l[0]))", "size(l) BETWEEN :n AND :n", "a IN (:s, b)", "contains(l, :s)", "begins_with(a, :s)", "attribute_type(a, :s)",
		"SET a = :s, m.x = if_not_exists(q, :n) + :n REMOVE l[1], l[0]", "ADD b :n, ss :ss DELETE ss :ss", "SET l = list_append(l, :l), l[7] = :s", "a, m.x[1], l[0].#n", "((a", ":", "#", "[", "a[99999999999]", "size(size(a)) = :n",
		"SET m.x = m REMOVE m.y", strings.Repeat("NOT ", 900) + "a = :s", strings.Repeat("(", 900),
	} {
		f.Add(text)
	}
	var item, values attr.Item
	if err := json.Unmarshal([]byte(`{"a": {"S": "s"}, "b": {"N": "1"}, "n": {"M": {}}, "l": {"L": [{"N": "1"}, {"M": {"n": {"S": "s"}}}]}, "m": {"M": {"x": {"L": []}, "y": {"N": "2"}}}, "ss": {"SS": ["a", "b"]}}`), &item); err != nil {
		f.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{":s": {"S": "S"}, ":n": {"N": "1"}, ":l": {"L": [{"S": "s"}]}, ":ss": {"SS": ["a"]}}`), &values); err != nil {
		f.Fatal(err)
	}
	before, err := json.Marshal(item)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := NewReader(map[string]string{"#n": "n"}, values)
		if err != nil {
			t.Fatal(err)
		}
		refused := func(name string, err error) {
			if err != nil && !strings.HasPrefix(err.Error(), "ValidationException: Invalid "+name+": ") {
				t.Errorf("%s %q: %v", name, text, err)
			}
		}
		c, err := r.Condition("FilterExpression", &text)
		if refused("FilterExpression", err); err == nil {
			if c.Holds(item) == (&Condition{&node{op: "NOT", kids: []*node{c.root}}}).Holds(item) {
				t.Errorf("%q and its contrary are the same", text)
			}
			c.Holds(nil)
		}
		if k, err := r.Condition("KeyConditionExpression", &text); err == nil {
			_, _ = k.Key("a", map[string]string{"a": "S", "b": "N"})
		}
		p, err := r.Projection(&text)
		if refused("ProjectionExpression", err); err == nil && p.Of(item).Size() > item.Size() {
			t.Errorf("%q of the item is more than it", text)
		}
		u, err := r.Update(&text)
		if refused("UpdateExpression", err); err == nil {
			if after, err := u.Apply(item); err == nil && u.OnlyTakes() && after.Size() > item.Size() {
				t.Errorf("%q made the item larger", text)
			}
			_, _ = u.Apply(attr.Item{})
			u.Paths().Of(item)
		}
		if after, err := json.Marshal(item); err != nil || string(after) != string(before) {
			t.Fatalf("%q changed the item in place: %s", text, after)
		}
	})
}
