package model

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// RPC v2 with CBOR is the JSON protocol with another encoding: it has the same members in CBOR, at a path
// that contains the operation. Requests are converted to JSON and answers from JSON, so services need not
// know the protocol of a request.

// errNotCBOR is AWS's error for a body that it cannot read.
var errNotCBOR = errors.New("the request body is not a valid CBOR map")

// cborReader accepts only bodies that the JSON protocol can express: no duplicate keys, text keys, and times
// as texts.
var cborReader = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, TimeTag: cbor.DecTagOptional, TimeTagToAny: cbor.TimeTagToRFC3339Nano,
		MaxNestedLevels: 32, MaxArrayElements: 1 << 16, MaxMapPairs: 1 << 16, UTF8: cbor.UTF8RejectInvalid,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

// CBOROperation returns the name of the operation of a CBOR request. ok is false if the request uses another
// protocol.
func (sv *Service) CBOROperation(r *http.Request) (name string, ok bool) {
	if !sv.CBOR || r.Header.Get("Smithy-Protocol") != "rpc-v2-cbor" {
		return "", false
	}
	name, _ = strings.CutPrefix(r.URL.Path, "/service/"+sv.Target+"/operation/")
	return name, true
}

// JSONOfCBOR converts a CBOR body to JSON. An empty body becomes an empty object.
func JSONOfCBOR(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	var v any
	if err := cborReader.Unmarshal(body, &v); err != nil {
		return nil, errNotCBOR
	}
	plain, ok := jsonValue(v)
	if _, object := plain.(map[string]any); !ok || !object {
		return nil, errNotCBOR
	}
	return json.Marshal(plain)
}

func jsonValue(v any) (any, bool) {
	switch v := v.(type) {
	case uint64:
		return json.Number(strconv.FormatUint(v, 10)), true
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), true
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64)), !math.IsNaN(v) && !math.IsInf(v, 0)
	case []byte:
		return base64.StdEncoding.EncodeToString(v), true
	case []any:
		out := make([]any, len(v))
		for i := range v {
			one, ok := jsonValue(v[i])
			if out[i] = one; !ok {
				return nil, false
			}
		}
		return out, true
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			name, isText := k.(string)
			one, ok := jsonValue(inner)
			if out[name] = one; !ok || !isText {
				return nil, false
			}
		}
		return out, true
	case string, bool, nil:
		return v, true
	}
	return nil, false
}

// CBOROfJSON converts a JSON object to CBOR. Its members have the types of the shape, which is nil if the
// object has no shape.
func CBOROfJSON(s *Shape, body []byte) ([]byte, error) {
	object := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&object); err != nil {
		return nil, err
	}
	return cbor.Marshal(cborValue(s, object))
}

func cborValue(s *Shape, v any) any {
	if s == nil {
		s = &Shape{}
	}
	switch v := v.(type) {
	case json.Number:
		whole, err := v.Int64()
		number, _ := v.Float64() // encoding/json accepted it as a number
		switch {
		case s.Type == "timestamp":
			return cbor.Tag{Number: 1, Content: number}
		case err == nil && s.Type != "double" && s.Type != "float":
			return whole
		}
		return number
	case string:
		if s.Type == "blob" {
			raw, _ := base64.StdEncoding.DecodeString(v) // the service encoded it
			return raw
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cborValue(shapeOf(s.Item), v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			of := shapeOf(s.Members[name])
			if s.Type == "map" {
				of = shapeOf(s.Value)
			}
			out[name] = cborValue(of, inner)
		}
		return out
	}
	return v
}

func shapeOf(m *Member) *Shape {
	if m == nil {
		return nil
	}
	return m.Shape
}
