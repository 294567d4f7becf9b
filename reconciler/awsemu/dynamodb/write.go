package dynamodb

import (
	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/expression"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// names contains the names and values of a request's expressions.
type names struct {
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues attr.Item
}

func (n names) reader() (*expression.Reader, error) {
	return expression.NewReader(n.ExpressionAttributeNames, n.ExpressionAttributeValues)
}

// write is one write of an item, alone or in a transaction. The model has checked which of these members the
// operation has.
type write struct {
	names
	TableName                           string
	Key, Item                           attr.Item
	UpdateExpression                    *string
	ConditionExpression                 *string
	ReturnValuesOnConditionCheckFailure string
}

// change is a write in progress. Nothing is stored before store.
type change struct {
	kind      string // Put, Update, Delete or ConditionCheck
	table     *Table
	row       string
	key       attr.Item
	put       attr.Item
	condition *expression.Condition
	update    *expression.Update
	returnOld bool  // if the condition fails
	invalid   error // error of the key or the item

	before, after attr.Item // nil: no item
}

// expressionsOf lists the expressions of each kind of write.
var expressionsOf = map[string][]string{
	"Put": {"ConditionExpression"}, "Delete": {"ConditionExpression"}, "ConditionCheck": {"ConditionExpression"},
	"Update": {"UpdateExpression", "ConditionExpression"},
}

// prepare reads a write and finds its table. It leaves errors of the key or the item to try.
func (r *Region) prepare(kind string, w write) (*change, error) {
	c := &change{kind: kind, put: w.Item, key: w.Key, returnOld: w.ReturnValuesOnConditionCheckFailure == "ALL_OLD"}
	reader, err := w.reader()
	if err != nil {
		return nil, err
	}
	if c.update, err = reader.Update(w.UpdateExpression); err != nil {
		return nil, err
	}
	if c.condition, err = reader.Condition("ConditionExpression", w.ConditionExpression); err != nil {
		return nil, err
	}
	if err := reader.Done(expressionsOf[kind]...); err != nil {
		return nil, err
	}
	if c.table, err = r.open(w.TableName); err != nil {
		return nil, err
	}
	if kind == "Put" {
		c.invalid = c.table.checkItem(w.Item, "Item size has exceeded the maximum allowed size")
		c.key = c.table.keyOf(w.Item)
	} else {
		c.invalid = c.table.checkKey(w.Key)
	}
	c.update.Each(func(name string) {
		if c.table.isKey(name) && c.invalid == nil {
			c.invalid = attr.Invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", name)
		}
	})
	c.row = c.table.rowKey(c.key)
	return c, nil
}

// try computes the result of the write.
func (c *change) try() error {
	if c.invalid != nil {
		return c.invalid
	}
	c.before = c.table.Items.Get(c.row)
	if !c.condition.Holds(c.before) {
		failed := wire.Fail("ConditionalCheckFailedException", "The conditional request failed")
		if c.returnOld && c.before != nil {
			failed = failed.With("Item", c.before)
		}
		return failed
	}
	switch c.kind {
	case "Put":
		c.after = c.put
	case "ConditionCheck":
		c.after = c.before
	case "Update":
		old := c.before
		if old == nil {
			if c.update.OnlyTakes() {
				return nil
			}
			old = c.key
		}
		var err error
		if c.after, err = c.update.Apply(old); err != nil {
			return err
		}
		return c.table.checkItem(c.after, "Item size to update has exceeded the maximum allowed size")
	}
	return nil
}

// units returns the units that the write consumes of the table's capacity.
func (c *change) units() float64 { return units(max(c.before.Size(), c.after.Size()), 1<<10) }

// store stores the result of try.
func (r *Region) store(c *change) {
	switch {
	case c.kind == "ConditionCheck":
	case c.after == nil:
		c.table.Items.Remove(c.row)
	default:
		c.table.Items.Put(c.row, c.after)
	}
}

// writeInput is the input of PutItem, UpdateItem and DeleteItem.
type writeInput struct {
	write
	ReturnValues                string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string // for tables with local indexes, which are not supported
}

func writer(kind string) func(*request, writeInput) (any, error) {
	return func(rq *request, in writeInput) (any, error) {
		switch {
		case kind != "Update" && in.ReturnValues != "" && in.ReturnValues != "NONE" && in.ReturnValues != "ALL_OLD":
			return nil, attr.Invalid("Return values set to invalid value")
		}
		c, err := rq.Region.prepare(kind, in.write)
		if err != nil {
			return nil, err
		}
		err = c.try()
		if slow := rq.Region.spend(c.table, c.units(), true); slow != nil {
			return nil, slow
		}
		if err != nil {
			return nil, err
		}
		rq.Region.store(c)
		out := map[string]any{}
		if shown := c.shown(in.ReturnValues); len(shown) > 0 {
			out["Attributes"] = shown
		}
		var used consumption
		used.write(c.table, c.units(), false)
		used.into(out, in.ReturnConsumedCapacity, true)
		return out, nil
	}
}

// shown returns the requested attributes after a write.
func (c *change) shown(values string) attr.Item {
	switch values {
	case "ALL_OLD":
		return c.before
	case "ALL_NEW":
		return c.after
	case "UPDATED_OLD":
		return c.updated(c.before)
	case "UPDATED_NEW":
		return c.updated(c.after)
	}
	return nil
}

func (c *change) updated(item attr.Item) attr.Item {
	if c.update == nil {
		return nil
	}
	return c.update.Paths().Of(item)
}
