package dynamodb

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// The capacity of a new on-demand table in units per second, and the time for which a provisioned table
// keeps unused capacity.
const (
	onDemandReads  = 12000
	onDemandWrites = 4000
	kept           = 5 * time.Minute
)

// units returns the number of steps that a size counts, at least one.
func units(size, step int) float64 { return max(1, math.Ceil(float64(size)/float64(step))) }

// readUnits returns the units of a read of a size. An eventually consistent read counts half.
func readUnits(size int, consistent bool) float64 {
	if consistent {
		return units(size, 4<<10)
	}
	return units(size, 4<<10) / 2
}

// bucket is the remaining capacity at a time.
type bucket struct {
	left float64
	at   time.Time
}

// spend takes units of a table's capacity, and fails if none is left.
func (r *Region) spend(t *Table, units float64, writes bool) error {
	if !r.throttles {
		return nil
	}
	key, rate, most := t.ID, float64(onDemandReads), float64(onDemandReads)
	if writes {
		key, rate, most = key+"/write", onDemandWrites, onDemandWrites
	}
	if !t.OnDemand {
		if rate = float64(t.ReadUnits); writes {
			rate = float64(t.WriteUnits)
		}
		most = rate * kept.Seconds()
	}
	b := r.buckets[key]
	if b == nil {
		b = &bucket{left: most, at: r.Now()}
		r.buckets[key] = b
	}
	b.left = min(most, b.left+r.Now().Sub(b.at).Seconds()*rate)
	b.at = r.Now()
	switch {
	case b.left > 0:
		b.left -= units
		return nil
	case t.OnDemand:
		return wire.Fail("ThrottlingException", "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly.")
	}
	return overCapacity()
}

func overCapacity() *wire.Error {
	return wire.Fail("ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
}

// throttled returns the throttling error for an operation without a certain table.
func throttled(op string) *wire.Error {
	if strings.Contains(op, "Item") || op == "Query" || op == "Scan" {
		return overCapacity()
	}
	return wire.Fail("ThrottlingException", "Rate of requests exceeds the allowed throughput.")
}

// consumption is the capacity that a call consumed, by table.
type consumption map[string]*used

type used struct {
	read, write float64
	transaction bool
}

func (c *consumption) of(t *Table) *used {
	if *c == nil {
		*c = consumption{}
	}
	if (*c)[t.Name] == nil {
		(*c)[t.Name] = &used{}
	}
	return (*c)[t.Name]
}

func (c *consumption) read(t *Table, units float64, transaction bool) {
	u := c.of(t)
	u.read, u.transaction = u.read+units, transaction
}

func (c *consumption) write(t *Table, units float64, transaction bool) {
	u := c.of(t)
	u.write, u.transaction = u.write+units, transaction
}

// into adds the consumption to an answer if the request asked for it. alone means a single value instead of
// a list.
func (c *consumption) into(out map[string]any, asked string, alone bool) {
	if asked != "TOTAL" && asked != "INDEXES" {
		return
	}
	list := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(*c)) {
		u := (*c)[name]
		members := map[string]any{"CapacityUnits": u.read + u.write}
		if u.transaction {
			members[map[bool]string{true: "WriteCapacityUnits", false: "ReadCapacityUnits"}[u.write > 0]] = u.read + u.write
		}
		one := maps.Clone(members)
		one["TableName"] = name
		if asked == "INDEXES" {
			one["Table"] = members
		}
		list = append(list, one)
	}
	if out["ConsumedCapacity"] = list; alone {
		out["ConsumedCapacity"] = list[0]
	}
}
