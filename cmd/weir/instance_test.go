package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/status/instances"
)

// fakeMachines has instances, or fails.
type fakeMachines struct {
	ids []string
	err error
	// second is the error of the second read.
	second error
	reads  int
}

func (f *fakeMachines) Account() string { return "111122223333" }

func (f *fakeMachines) Machines(_ context.Context, id string, whole bool) (out []observed.Machine, err error) {
	if f.reads++; f.reads == 2 && f.second != nil {
		return nil, f.second
	}
	for _, i := range f.ids {
		if i == id || !whole && strings.HasPrefix(i, id) {
			out = append(out, observed.Machine{ID: i})
		}
	}
	return out, f.err
}

func TestInstanceInAWS(t *testing.T) {
	throttled := &observed.Error{Kind: observed.Throttled, Service: "ec2", Operation: "DescribeInstances", Code: "RequestLimitExceeded"}
	denied := &observed.Error{Kind: observed.Denied, Service: "ec2", Operation: "DescribeInstances", Code: "UnauthorizedOperation"}
	for name, c := range map[string]struct {
		aws  fakeMachines
		id   string
		want string // the id, or a part of the error
	}{
		"whole id":              {fakeMachines{ids: []string{"i-0123456789abcdef0"}}, "i-0123456789abcdef0", "i-0123456789abcdef0"},
		"beginning":             {fakeMachines{ids: []string{"i-0123456789abcdef0"}}, "i-0123456789", "i-0123456789abcdef0"},
		"short id":              {fakeMachines{ids: []string{"i-01234567", "i-0123456789abcdef0"}}, "i-01234567", "i-01234567"},
		"several":               {fakeMachines{ids: []string{"i-0123456789abcdef0", "i-0123456789abcdef1"}}, "i-01234567", "2 instances begin with i-01234567: i-0123456789abcdef0, i-0123456789abcdef1"},
		"none":                  {fakeMachines{}, "i-0123456789abcdef0", "account 111122223333 has no instance i-0123456789abcdef0 in eu-west-1"},
		"denied":                {fakeMachines{err: denied}, "i-0123456789abcdef0", "read instance: ec2:DescribeInstances: UnauthorizedOperation"},
		"throttled":             {fakeMachines{err: throttled}, "i-0123456789abcdef0", "read instance: ec2:DescribeInstances: RequestLimitExceeded"},
		"throttled at the last": {fakeMachines{ids: []string{"i-01234567", "i-0123456789abcdef0"}, second: throttled}, "i-01234567", "RequestLimitExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := instances.ParseID(c.id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := instanceIn(t.Context(), &c.aws, "eu-west-1", id)
			switch {
			case err == nil && got.Instance.ID != c.want:
				t.Errorf("found %q", got.Instance.ID)
			case err != nil && !strings.Contains(err.Error(), c.want):
				t.Error(err)
			}
			for _, cause := range []error{c.aws.err, c.aws.second} {
				if cause != nil && !errors.Is(err, cause) {
					t.Errorf("%v is not %v", err, cause)
				}
			}
		})
	}
}
