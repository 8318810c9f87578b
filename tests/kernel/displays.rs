//! Figures, tables and the displays of libraries.

use base64::Engine as _;
use codeinterp::agent::execution::{Execution, ExecutionEvent, MimeBundle, Output};

use crate::rig::Rig;

fn displays(execution: &Execution) -> Vec<&MimeBundle> {
    let bundles = execution.outputs.iter().filter_map(|output| match output {
        Output::DisplayData { data, .. } | Output::ExecuteResult { data } => Some(data),
        _ => None,
    });
    bundles.collect()
}

fn png(bundle: &MimeBundle) -> Vec<u8> {
    let text = bundle["image/png"].as_str().unwrap();
    base64::engine::general_purpose::STANDARD.decode(text.replace('\n', "")).unwrap()
}

#[tokio::test]
async fn a_table_is_printed_with_all_its_columns() {
    let rig = Rig::start().await;
    let code = "import pandas as pd\nprint(pd.DataFrame({f'a column with a name {i}': [i * 1e6] for i in range(12)}))";
    let text = rig.run(code).await.stdout;
    assert!((0..12).all(|column| text.contains(&format!("name {column}"))), "{text}");
}

#[tokio::test]
async fn figures_are_shown_once_at_show_or_at_the_end_of_the_cell() {
    let rig = Rig::start().await;
    let code = "import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [4, 5, 9], label='sales')
plt.title('First')
plt.show()
print('between')
plt.figure(); plt.bar(['a', 'b'], [3, 7]); plt.title('Second'); plt.xlabel('group')
plt.figure();";
    let execution = rig.run(code).await;
    assert_eq!(execution.error, None);
    let shown = displays(&execution);
    assert_eq!(shown.len(), 2, "an empty figure is not shown");
    for bundle in shown {
        let picture = image::load_from_memory(&png(bundle)).unwrap();
        assert!(picture.width() > 300 && picture.height() > 200);
    }
    assert!(matches!(&execution.outputs[1], Output::Stream { text, .. } if text == "between\n"), "in the order of the code");
    let figures = &execution.figures;
    assert_eq!(figures.iter().map(|figure| figure.title.as_deref()).collect::<Vec<_>>(), [Some("First"), Some("Second")]);
    let line = &figures[0].detail["axes"][0]["series"][0];
    assert_eq!((line["kind"].as_str(), line["label"].as_str(), line["count"].as_u64()), (Some("line"), Some("sales"), Some(3)));
    assert_eq!(line["y"], serde_json::json!([4.0, 9.0]));
    let bars = &figures[1].detail["axes"][0];
    assert_eq!((bars["xlabel"].as_str(), bars["series"][0]["kind"].as_str()), (Some("group"), Some("bar")));
    assert_eq!(bars["xticks"], serde_json::json!(["a", "b"]));
    assert!(displays(&rig.run("1").await).len() == 1, "no figure is left for the next cell");
}

#[tokio::test]
async fn a_figure_of_absurd_size_is_drawn_smaller_and_a_broken_one_is_told() {
    let rig = Rig::start().await;
    let execution = rig.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(500, 500)); plt.plot([1]); plt.show()").await;
    let picture = png(displays(&execution)[0]);
    let size = image::ImageReader::new(std::io::Cursor::new(picture)).with_guessed_format().unwrap().into_dimensions().unwrap();
    assert!(u64::from(size.0) * u64::from(size.1) < 60_000_000, "{size:?}");
    let broken = rig.run("plt.plot([1]); plt.title('$\\\\frac{1$')").await;
    assert!(broken.stderr.contains("ParseException") || broken.error.is_some() || broken.stderr.contains("Error"), "{broken:?}");
    rig.prints("print(1)", "1\n").await;
}

#[tokio::test]
async fn labels_in_chinese_are_letters_and_not_boxes() {
    let rig = Rig::start().await;
    let code = "import matplotlib.pyplot as plt, warnings
warnings.simplefilter('error')
plt.plot([1, -2], label='销售额'); plt.title('月度数据'); plt.legend(); plt.show()";
    let execution = rig.run(code).await;
    assert_eq!(execution.error, None);
    assert_eq!(displays(&execution).len(), 1);
    assert!(!execution.stderr.contains("missing from"), "{}", execution.stderr);
    assert_eq!(execution.figures[0].title.as_deref(), Some("月度数据"));
}

#[tokio::test]
async fn tables_are_marked_with_their_size() {
    let rig = Rig::start().await;
    let execution = rig.run("import pandas as pd\ndf = pd.DataFrame({'a': range(150), 'b': 1})\ndisplay(df.head(2))\ndf").await;
    assert!(execution.result.as_deref().unwrap().starts_with("[DataFrame 150×2]\n"), "{:?}", execution.result);
    let shown = displays(&execution);
    assert!(shown[0]["text/plain"].as_str().unwrap().starts_with("[DataFrame 2×2]"));
    assert!(shown[1]["text/html"].as_str().unwrap().contains("<table"));
}

#[tokio::test]
async fn displays_can_be_updated_and_cleared() {
    let rig = Rig::start().await;
    let code = "from IPython.display import display, clear_output, HTML, Markdown, SVG, Latex
handle = display('10 %', display_id=True)
handle.update('100 %')
display(HTML('<b>bold</b>'), Markdown('*it*'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'), Latex('$x$'))";
    let (execution, events) = rig.watch(code).await;
    let shown = displays(&execution);
    assert_eq!(shown[0]["text/plain"], "'100 %'");
    for (bundle, mime) in shown[1..].iter().zip(["text/html", "text/markdown", "image/svg+xml", "text/latex"]) {
        assert!(bundle.contains_key(mime), "{mime}: {bundle:?}");
    }
    assert!(events.iter().any(|event| matches!(event, ExecutionEvent::Update(..))));
    let (cleared, events) = rig.watch("print('old'); clear_output(); print('new')").await;
    assert_eq!(cleared.outputs.len(), 1);
    assert!(events.contains(&ExecutionEvent::Clear));
}

#[tokio::test]
async fn plotly_and_altair_give_json_and_need_no_browser() {
    let rig = Rig::start().await;
    let code = "import plotly.express as px, plotly.graph_objects as go
fig = px.bar(x=['a', 'b'], y=[1, 2], title='Bars')
fig.show()
fig";
    let execution = rig.run(code).await;
    assert_eq!(execution.error, None);
    let shown = displays(&execution);
    assert_eq!(shown.len(), 2);
    for bundle in shown {
        let figure = &bundle["application/vnd.plotly.v1+json"];
        assert_eq!(figure["layout"]["title"]["text"], "Bars");
        assert!(!bundle.contains_key("text/html"));
    }
    let vega = rig.run("import altair as alt, pandas as pd\nalt.Chart(pd.DataFrame({'a': [1]})).mark_bar().encode(x='a')").await;
    assert_eq!(vega.error, None);
    assert!(displays(&vega)[0].keys().any(|mime| mime.starts_with("application/vnd.vegalite")), "{:?}", displays(&vega)[0].keys());
}

#[tokio::test]
async fn a_flood_of_displays_is_cut_and_counted() {
    let rig = Rig::start().await;
    let execution = rig.run("for i in range(5000): display(i)").await;
    assert_eq!(execution.exit_code, 0);
    assert!(execution.outputs.len() <= 2000);
    assert!(execution.stderr.contains("4000 displays were left out"), "{}", execution.stderr);
    let huge = rig.run("from IPython.display import HTML\nHTML('x' * 40_000_000)").await;
    assert_eq!(huge.exit_code, 0);
    assert!(huge.result.unwrap().contains("too large to show"));
}

#[tokio::test]
async fn displays_that_raise_or_cannot_be_sent_do_not_end_the_kernel() {
    let rig = Rig::start().await;
    let code = "class A:\n    def _repr_html_(self): raise ValueError('no')\nclass B:\n    def _repr_mimebundle_(self, **k): return {'application/json': {1: object()}}\ndisplay(A()); display(B()); display({'text/plain': object()}, raw=True)\n'end'";
    let execution = rig.run(code).await;
    assert_eq!(execution.exit_code, 0, "{execution:?}");
    assert_eq!(execution.result.as_deref(), Some("'end'"));
    let odd =
        rig.run("display({'application/json': {'a': [float('nan'), float('inf')], 'b': '\\ud800'}, 'text/plain': 'odd'}, raw=True)").await;
    assert_eq!(displays(&odd)[0]["application/json"]["a"], serde_json::json!([null, null]));
    let deep = rig.run("x = []\nfor i in range(5000): x = [x]\ndisplay({'application/json': x}, raw=True)\nprint('end')").await;
    assert_eq!((deep.exit_code, deep.stdout.as_str()), (0, "end\n"), "{deep:?}");
}
