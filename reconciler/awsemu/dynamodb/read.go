package dynamodb

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/expression"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// maxPage is the maximum number of bytes that a query or scan reads.
const maxPage = 1 << 20

// consistent reports whether a read is strongly consistent.
func consistent(rq *wire.Exchange) bool {
	if rq.Operation.Name == "TransactGetItems" {
		return true
	}
	var in struct{ ConsistentRead bool }
	return json.Unmarshal(rq.Body, &in) == nil && in.ConsistentRead
}

// get is a read of one item.
type get struct {
	names
	TableName            string
	Key                  attr.Item
	ProjectionExpression *string
}

// find returns the table, the row and the projection of a read.
func (r *Region) find(g get) (*Table, string, *expression.Projection, error) {
	reader, err := g.reader()
	if err != nil {
		return nil, "", nil, err
	}
	projection, err := reader.Projection(g.ProjectionExpression)
	if err == nil {
		err = reader.Done("ProjectionExpression")
	}
	if err != nil {
		return nil, "", nil, err
	}
	t, err := r.open(g.TableName)
	if err == nil {
		err = t.checkKey(g.Key)
	}
	if err != nil {
		return nil, "", nil, err
	}
	return t, t.rowKey(g.Key), projection, nil
}

// pageInput contains the members that a query and a scan share.
type pageInput struct {
	names
	TableName              string
	IndexName              *string
	FilterExpression       *string
	ProjectionExpression   *string
	KeyConditionExpression *string
	ExclusiveStartKey      attr.Item
	ConsistentRead         bool
	ScanIndexForward       *bool
	Limit                  int
	Select                 string
	Segment                *int
	TotalSegments          *int
	ReturnConsumedCapacity string
}

// page is a query or scan in progress.
type page struct {
	pageInput
	table      *Table
	key        *expression.Condition
	filter     *expression.Condition
	projection *expression.Projection
}

// page checks the members that a query and a scan share.
func (r *Region) page(in pageInput, expressions ...string) (*page, error) {
	p := &page{pageInput: in}
	reader, err := in.reader()
	if err != nil {
		return nil, err
	}
	if p.key, err = reader.Condition("KeyConditionExpression", in.KeyConditionExpression); err != nil {
		return nil, err
	}
	if p.filter, err = reader.Condition("FilterExpression", in.FilterExpression); err != nil {
		return nil, err
	}
	if p.projection, err = reader.Projection(in.ProjectionExpression); err != nil {
		return nil, err
	}
	if err := reader.Done(expressions...); err != nil {
		return nil, err
	}
	switch {
	case in.Select == "ALL_PROJECTED_ATTRIBUTES":
		return nil, attr.Invalid("One or more parameter values were invalid: ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	case in.ProjectionExpression != nil && in.Select != "" && in.Select != "SPECIFIC_ATTRIBUTES":
		return nil, attr.Invalid("Cannot specify the ProjectionExpression when choosing to get %s", map[bool]string{true: "only the Count", false: in.Select}[in.Select == "COUNT"])
	case in.ProjectionExpression == nil && in.Select == "SPECIFIC_ATTRIBUTES":
		return nil, attr.Invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	}
	if p.table, err = r.open(in.TableName); err != nil {
		return nil, err
	}
	if in.IndexName != nil {
		return nil, attr.Invalid("The table does not have the specified index: %s", *in.IndexName)
	}
	if in.ExclusiveStartKey != nil {
		if err := p.table.checkKey(in.ExclusiveStartKey); err != nil {
			return nil, attr.Invalid("The provided starting key is invalid: %s", wire.AsError(err, wire.Dialect{}).Message)
		}
	}
	return p, nil
}

// read reads rows in order until the page is full, and returns those that take and the filter accept.
func (p *page) read(rq *request, rows []string, take func(attr.Item) bool) (any, error) {
	items, scanned, size := []attr.Item{}, 0, 0
	var last attr.Item
	for _, row := range rows {
		item := p.table.Items.Get(row)
		if !take(item) {
			continue
		}
		scanned++
		size += item.Size()
		if p.filter.Holds(item) {
			items = append(items, p.projection.Of(item))
		}
		if scanned == p.Limit || size >= maxPage {
			last = p.table.keyOf(item) // even if no further rows exist
			break
		}
	}
	count := readUnits(size, p.ConsistentRead)
	if err := rq.Region.spend(p.table, count, false); err != nil {
		return nil, err
	}
	out := map[string]any{"Count": len(items), "ScannedCount": scanned}
	if p.Select != "COUNT" {
		out["Items"] = items
	}
	if last != nil {
		out["LastEvaluatedKey"] = last
	}
	var used consumption
	used.read(p.table, count, false)
	used.into(out, p.ReturnConsumedCapacity, true)
	return out, nil
}

// after returns the rows after the given one, or before it.
func after(rows []string, row string, forward bool) []string {
	at := sort.SearchStrings(rows, row)
	if !forward {
		return rows[:at]
	}
	if at < len(rows) && rows[at] == row {
		at++
	}
	return rows[at:]
}

// segment returns the part of a parallel scan to which a row belongs.
func segment(row string, of int) int {
	at, err := strconv.ParseInt(row[:8], 16, 64)
	if err != nil {
		panic(err) // rows start with a digest
	}
	return int(at % int64(of))
}

func scan(rq *request, in pageInput) (any, error) {
	p, err := rq.Region.page(in, "FilterExpression")
	if err != nil {
		return nil, err
	}
	switch {
	case in.Segment != nil && in.TotalSegments == nil:
		return nil, attr.Invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case in.Segment == nil && in.TotalSegments != nil:
		return nil, attr.Invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case in.Segment != nil && *in.Segment >= *in.TotalSegments:
		return nil, attr.Invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", *in.Segment, *in.TotalSegments)
	}
	rows := p.table.Items.Sorted()
	if in.Segment != nil {
		rows = slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return segment(row, *in.TotalSegments) != *in.Segment })
	}
	if in.ExclusiveStartKey != nil {
		from := p.table.rowKey(in.ExclusiveStartKey)
		if in.Segment != nil && segment(from, *in.TotalSegments) != *in.Segment {
			return nil, attr.Invalid("The provided Exclusive start key is not within the provided Segment")
		}
		rows = after(rows, from, true)
	}
	return p.read(rq, rows, func(attr.Item) bool { return true })
}

func query(rq *request, in pageInput) (any, error) {
	if in.KeyConditionExpression == nil {
		return nil, attr.Invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	p, err := rq.Region.page(in, "FilterExpression", "KeyConditionExpression")
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, k := range p.table.Keys {
		keys[k.Name] = k.Type
	}
	hash, err := p.key.Key(p.table.Keys[0].Name, keys)
	if err != nil {
		return nil, err
	}
	p.filter.Each(func(name string) {
		if p.table.isKey(name) && err == nil {
			err = attr.Invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
		}
	})
	if err != nil {
		return nil, err
	}
	forward := in.ScanIndexForward == nil || *in.ScanIndexForward
	begin := partition(hash)
	rows := p.table.Items.Sorted()
	rows = rows[sort.SearchStrings(rows, begin):]
	rows = rows[:sort.Search(len(rows), func(i int) bool { return !strings.HasPrefix(rows[i], begin) })]
	if in.ExclusiveStartKey != nil {
		if len(p.table.Keys) == 1 { // nothing follows a single item
			return nil, attr.Invalid("The provided exclusive start key is invalid: ExclusiveStartKey: %s", attr.Value{Type: "M", Map: in.ExclusiveStartKey})
		}
		if !p.key.Holds(in.ExclusiveStartKey) {
			return nil, attr.Invalid("The provided starting key is outside query boundaries based on provided conditions")
		}
		rows = after(rows, p.table.rowKey(in.ExclusiveStartKey), forward)
	}
	if !forward {
		rows = slices.Clone(rows)
		slices.Reverse(rows)
	}
	return p.read(rq, rows, p.key.Holds)
}
