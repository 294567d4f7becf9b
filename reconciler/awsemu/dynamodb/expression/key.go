package expression

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
)

// Key checks a condition on a table's key, whose attributes have types, and returns the requested value of
// the hash key.
func (c *Condition) Key(hash string, types map[string]string) (attr.Value, error) {
	parts := []*node{c.root}
	if c.root.op == "AND" {
		parts = c.root.kids
	}
	asked := map[string]*node{}
	for _, n := range parts {
		switch n.op {
		case "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with":
		case "AND":
			return attr.Value{}, attr.Invalid("Conditions can be of length 1 or 2 only")
		default:
			return attr.Value{}, attr.Invalid("Invalid operator used in KeyConditionExpression: %s", n.op)
		}
		if n.args[0].path == nil {
			n.turn()
		}
		if len(n.args[0].path) > 1 {
			return attr.Value{}, attr.Invalid("KeyConditionExpressions cannot have conditions on nested attributes")
		}
		if n.args[0].path == nil || slices.ContainsFunc(n.args[1:], func(o operand) bool { return o.value == nil }) {
			return attr.Value{}, attr.Invalid("Invalid KeyConditionExpression: Syntax error; a key attribute must be compared with values")
		}
		name := n.args[0].path.Attribute()
		if asked[name] != nil {
			return attr.Value{}, attr.Invalid("KeyConditionExpressions must only contain one condition per key")
		}
		asked[name] = n
		for _, o := range n.args[1:] {
			if types[name] != "" && o.value.Type != types[name] {
				return attr.Value{}, attr.Invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
			}
			if types[name] != "" && o.value.Type != "N" && o.value.Text == "" && n.op != "begins_with" {
				return attr.Value{}, attr.Invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
			}
		}
	}
	n := asked[hash]
	if n == nil {
		return attr.Value{}, attr.Invalid("Query condition missed key schema element: %s", hash)
	}
	if n.op != "=" {
		return attr.Value{}, attr.Invalid("Query key condition not supported")
	}
	for name := range asked {
		if types[name] == "" {
			for key := range types {
				if key != hash {
					return attr.Value{}, attr.Invalid("Query condition missed key schema element: %s", key)
				}
			}
			return attr.Value{}, attr.Invalid("Query key condition not supported")
		}
	}
	return *n.args[1].value, nil
}

// turn swaps the operands of a comparison that starts with the value.
func (n *node) turn() {
	turned := map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}[n.op]
	if turned != "" {
		n.op, n.args = turned, []operand{n.args[1], n.args[0]}
	}
}
