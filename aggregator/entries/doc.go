// Package entries splits fragments into entries, so that a database can store a change of a fragment
// without the rest.
//
// [Patch] has the same result as [Of] for the patched fragment.
//
//	head                             weft.v1.Fragment without tables
//	FAMILY TABLE                     weft.v1.Table: comment and flags
//	FAMILY TABLE chain NAME          weft.v1.Table with this chain
//	FAMILY TABLE flowtable NAME      weft.v1.Table with this flowtable
//	FAMILY TABLE object KIND NAME    weft.v1.Table with this object
//	FAMILY TABLE set NAME            weft.v1.Table with this set or map, without elements
//	FAMILY TABLE set NAME ELEMENT    weft.v1.Element
//
// All but [Stored] is pure.
package entries
