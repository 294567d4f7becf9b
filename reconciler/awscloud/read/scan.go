package read

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awscloud/xmlscan"
)

// pageScan is a scanner for the values in AWS's XML.
type pageScan struct {
	*xmlscan.Scanner
	err error
}

// Text returns the text of an element. A text that is too long is an error.
func (s *pageScan) Text() string {
	text := s.Scanner.Text()
	if len(text) > sdk.LongestText {
		s.bad(sdk.TooLong(len(text), string(s.Name())))
	}
	return text
}

func (s *pageScan) bad(err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("scan %s: %w", s.Name(), err)
	}
}

func (s *pageScan) int32() int32 {
	n, err := strconv.ParseInt(s.Text(), 10, 32)
	s.bad(err)
	return int32(n) //nolint:gosec // ParseInt has checked the bounds
}

func (s *pageScan) int64() int64 {
	n, err := strconv.ParseInt(s.Text(), 10, 64)
	s.bad(err)
	return n
}

func (s *pageScan) bool() bool {
	b, err := strconv.ParseBool(s.Text())
	s.bad(err)
	return b
}

func (s *pageScan) time() time.Time {
	t, err := smithytime.ParseDateTime(s.Text())
	s.bad(err)
	return t
}

// members calls each for every item of a list.
func (s *pageScan) members(each func()) {
	for s.Child() {
		each()
	}
}

// scanPage enters the root element of an answer, then the path below it, and calls each for every element
// inside.
func scanPage(body []byte, root, path string, each func(*pageScan)) error {
	s := &pageScan{Scanner: xmlscan.New(body)}
	if !s.Child() || string(s.Name()) != root {
		return fmt.Errorf("scan page: the answer is no %s", root)
	}
	if path == "" {
		each(s)
	} else {
		for s.Child() {
			if string(s.Name()) == path {
				each(s)
			} else {
				s.Skip()
			}
		}
	}
	if err := s.End(); err != nil {
		return err
	}
	return s.err
}

// scanInto reads the entered element into a value whose members have the elements' names. unknown says that
// the element has content that the value cannot express.
func scanInto(s *pageScan, v reflect.Value) (unknown bool) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return scanInto(s, v.Elem())
	case reflect.Struct:
		members := membersOf(v.Type())
		for s.Child() {
			if i, ok := members[string(s.Name())]; ok {
				unknown = scanInto(s, v.Field(i)) || unknown
			} else {
				unknown = scanRest(s) || unknown
			}
		}
	case reflect.Slice:
		s.members(func() {
			v.Grow(1)
			v.SetLen(v.Len() + 1)
			unknown = scanInto(s, v.Index(v.Len()-1)) || unknown
		})
	case reflect.Bool:
		v.SetBool(s.bool())
	case reflect.Int32:
		v.SetInt(int64(s.int32()))
	case reflect.Float64:
		n, err := strconv.ParseFloat(s.Text(), 64)
		s.bad(err)
		v.SetFloat(n)
	case reflect.String:
		v.SetString(s.Text())
	default:
		panic("scanInto: no way to read a " + v.Type().String())
	}
	return unknown
}

var knownMembers sync.Map // of reflect.Type: map[string]int

// membersOf returns the index of each member of a struct, by its name in XML.
func membersOf(t reflect.Type) map[string]int {
	if m, ok := knownMembers.Load(t); ok {
		return m.(map[string]int)
	}
	m := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if name := cmp.Or(t.Field(i).Tag.Get("xml"), convert.Name(t.Field(i))); name != "" {
			m[name] = i
		}
	}
	knownMembers.Store(t, m)
	return m
}

// scanRest skips an unknown element, and reports whether it had content.
func scanRest(s *pageScan) bool {
	before := s.Pos()
	name := len(s.Name())
	s.Skip()
	// An element without content is at most its two tags.
	return s.Pos()-before > len("</>")+name
}
