package dynamodb

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/expression"
)

// DynamoDB's limits of batches.
const (
	maxBatchWrites = 25
	maxBatchReads  = 100
	maxBatchBytes  = 16 << 20
)

var errDuplicates = attr.Invalid("Provided list of item keys contains duplicates")

// half is how much of a batch is done.
func half(rq *request, of int) int {
	if rq.Partly {
		return of / 2
	}
	return of
}

type batchWrite struct {
	PutRequest    *struct{ Item attr.Item } `json:",omitempty"`
	DeleteRequest *struct{ Key attr.Item }  `json:",omitempty"`
}

type batchWriteItemInput struct {
	RequestItems                map[string][]batchWrite
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

func batchWriteItem(rq *request, in batchWriteItemInput) (any, error) {
	r := rq.Region
	type one struct {
		*change
		table string // as the request names it
		asked batchWrite
	}
	var all []one
	seen := map[string]bool{}
	for _, table := range slices.Sorted(maps.Keys(in.RequestItems)) {
		for _, asked := range in.RequestItems[table] {
			kind, w := "Put", write{TableName: table}
			switch {
			case (asked.PutRequest == nil) == (asked.DeleteRequest == nil):
				return nil, attr.Invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
			case asked.PutRequest != nil:
				w.Item = asked.PutRequest.Item
			default:
				kind, w.Key = "Delete", asked.DeleteRequest.Key
			}
			c, err := r.prepare(kind, w)
			if err == nil {
				err = c.try()
			}
			switch {
			case err != nil:
				return nil, err
			case seen[c.table.ID+c.row]:
				return nil, errDuplicates
			}
			seen[c.table.ID+c.row] = true
			all = append(all, one{c, table, asked})
		}
	}
	if len(all) > maxBatchWrites {
		return nil, attr.Invalid("Too many items requested for the BatchWriteItem call")
	}
	left := map[string][]batchWrite{}
	var used consumption
	done := 0
	for i, c := range all {
		if i >= half(rq, len(all)) || r.spend(c.change.table, c.units(), true) != nil {
			left[c.table] = append(left[c.table], c.asked)
			continue
		}
		done++
		r.store(c.change)
		used.write(c.change.table, c.units(), false)
	}
	if done == 0 {
		return nil, overCapacity()
	}
	out := map[string]any{"UnprocessedItems": left}
	used.into(out, in.ReturnConsumedCapacity, false)
	return out, nil
}

type batchGet struct {
	Keys                     []attr.Item
	ProjectionExpression     *string           `json:",omitempty"`
	ExpressionAttributeNames map[string]string `json:",omitempty"`
	ConsistentRead           bool              `json:",omitempty"`
}

type batchGetItemInput struct {
	RequestItems           map[string]*batchGet
	ReturnConsumedCapacity string
}

func batchGetItem(rq *request, in batchGetItemInput) (any, error) {
	r := rq.Region
	type one struct {
		table      *Table
		name, row  string
		key        attr.Item
		projection *expression.Projection
	}
	var all []one
	seen := map[string]bool{}
	answers := map[string][]attr.Item{}
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		asked := in.RequestItems[name]
		answers[name] = []attr.Item{}
		for _, key := range asked.Keys {
			t, row, projection, err := r.find(get{names: names{ExpressionAttributeNames: asked.ExpressionAttributeNames}, TableName: name, Key: key, ProjectionExpression: asked.ProjectionExpression})
			switch {
			case err != nil:
				return nil, err
			case seen[t.ID+row]:
				return nil, errDuplicates
			}
			seen[t.ID+row] = true
			all = append(all, one{t, name, row, key, projection})
		}
	}
	if len(all) > maxBatchReads {
		return nil, attr.Invalid("Too many items requested for the BatchGetItem call")
	}
	left := map[string]*batchGet{}
	var used consumption
	done, size := 0, 0
	for i, g := range all {
		item, asked := g.table.Items.Get(g.row), in.RequestItems[g.name]
		count := readUnits(item.Size(), asked.ConsistentRead)
		if i >= half(rq, len(all)) || size+item.Size() > maxBatchBytes || r.spend(g.table, count, false) != nil {
			if left[g.name] == nil {
				again := *asked
				again.Keys = nil
				left[g.name] = &again
			}
			left[g.name].Keys = append(left[g.name].Keys, g.key)
			continue
		}
		done++
		size += item.Size()
		used.read(g.table, count, false)
		if item != nil {
			answers[g.name] = append(answers[g.name], g.projection.Of(item))
		}
	}
	if done == 0 {
		return nil, overCapacity()
	}
	out := map[string]any{"Responses": answers, "UnprocessedKeys": left}
	used.into(out, in.ReturnConsumedCapacity, false)
	return out, nil
}
