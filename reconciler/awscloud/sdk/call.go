package sdk

import "context"

// Call is an operation of a service's client, as a function. A field with the client's type would keep all
// of its several hundred operations in the binary, 40 MB in total. So each package lists the operations that
// it calls, and a test sends each of them through the fence.
type Call[In, Out, Options any] = func(context.Context, *In, ...func(*Options)) (*Out, error)
