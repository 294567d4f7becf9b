package membership

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// A record contains the last few reports of a target whose passes changed something, followed by its newest
// report. Other members read the record only from time to time, and must not miss a change.
const (
	keptReports = 8
	keptBytes   = 768 << 10
	// mostBytes is the maximum size of the data of one write.
	mostBytes = coord.MaxWrite - 4<<10
)

// numbered is a report in a record. Numbers only increase, even if the owner changes.
type numbered struct {
	n    int64
	did  bool
	data []byte
}

func pack(list []numbered) []byte {
	var out []byte
	for _, r := range list {
		out = binary.BigEndian.AppendUint64(out, uint64(r.n)) //nolint:gosec // a time
		did := byte(0)
		if r.did {
			did = 1
		}
		out = append(out, did)
		out = binary.BigEndian.AppendUint32(out, uint32(len(r.data))) //nolint:gosec // bounded by keptBytes
		out = append(out, r.data...)
	}
	return out
}

func unpack(data []byte) (list []numbered) {
	for len(data) >= 13 {
		r := numbered{n: int64(binary.BigEndian.Uint64(data)), did: data[8] == 1} //nolint:gosec // compared alone
		size := int(binary.BigEndian.Uint32(data[9:]))
		if data = data[13:]; size > len(data) {
			break
		}
		r.data, data = data[:size], data[size:]
		list = append(list, r)
	}
	return list
}

// trim drops reports that are no longer needed.
func trim(list []numbered) []numbered {
	newest := len(list) - 1
	list = slices.DeleteFunc(list, func(r numbered) bool { return !r.did && r.n != list[newest].n })
	list = list[max(0, len(list)-keptReports):]
	size := 0
	for i := len(list) - 1; i >= 0; i-- {
		if size += len(list[i].data); size > keptBytes && i < len(list)-1 {
			return list[i+1:]
		}
	}
	return list
}

// partSize leaves room for the first byte of a part, which contains the number of parts.
const partSize = coord.MaxValue - 1024

// numberAfter returns a number for a record that is greater than last. It is based on the time, so that
// numbers increase even if the owner changes.
func numberAfter(last int64) int64 { return max(time.Now().UnixMilli(), last+1) }

// recordedReports returns the reports in a target's record.
func recordedReports(now *coord.Snapshot, target string) []numbered {
	first := now.Get(reportKey(target) + "0")
	if len(first.Value) == 0 {
		return nil
	}
	var data []byte
	for i := range int(first.Value[0]) {
		if r := now.Get(fmt.Sprintf("%s%d", reportKey(target), i)); len(r.Value) > 0 {
			data = append(data, r.Value[1:]...)
		}
	}
	return unpack(data)
}

// reportOps returns the operations that write a target's record, and remove unused parts of the earlier record.
func reportOps(now *coord.Snapshot, target string, data []byte) (ops []coord.Op) {
	key := reportKey(target)
	parts := slices.Collect(slices.Chunk(data, partSize))
	for i, part := range parts {
		value := append([]byte{byte(len(parts))}, part...)
		ops = append(ops, coord.Op{Key: fmt.Sprintf("%s%d", key, i), Value: value, If: coord.Any})
	}
	for _, old := range now.List(key) {
		if !slices.ContainsFunc(ops, func(op coord.Op) bool { return op.Key == old.Key }) {
			ops = append(ops, coord.Op{Key: old.Key, Delete: true, If: coord.Any})
		}
	}
	return ops
}
