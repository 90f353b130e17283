//! Names of entities: a `FooId` names a `Foo` in an arena of the graph.

use cranelift_entity::entity_impl;

macro_rules! ids {
    ($($name:ident $prefix:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    )* };
}

ids! {
    VarId "var" "Names a `Var`.";
    SpecId "spec" "Names a `Codelet`: one specialisation.";
    ItemId "item" "Names a `CodeletItem`: the text of a codelet or codelet function.";
    FamilyId "family" "Names a `Family` of vertices.";
    ComputeSetId "set" "Names a `ComputeSet`.";
    CopyId "copy" "Names a `CopySet`.";
    StreamId "stream" "Names a `Stream`.";
    ProgramId "program" "Names a `Program`.";
    StepId "step" "Names a `Step`; ids ascend in pre-order of the text.";
    FieldId "field" "Names a field of a codelet, in the order of declaration, `const` fields included.";
    SizeId "size" "Names a size of a codelet: a dimension that each vertex's views bind.";
    LocalId "local" "Names a local of a codelet.";
    ExprId "expr" "Names an expression of a codelet.";
    SiteId "site" "Names a place of a codelet where a check may fail.";
}
